//! Volumes.

use std::time::Duration;

use crate::{
    container::{FieldPath, ObjectKind, PullPolicy, ResourceField},
    resources::Bytes,
    volume_plugin::VolumePlugin,
};

/// One entry of `volumes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// `name`.
    pub name: Box<str>,
    /// What it is made of.
    pub source: VolumeSource,
}

/// The kinds of volumes Rubelet can make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeSource {
    /// `emptyDir`.
    EmptyDir {
        /// `medium`.
        medium: Medium,
        /// `sizeLimit`.
        size_limit: Option<Bytes>,
    },
    /// `hostPath`.
    HostPath {
        /// `path`.
        path: Box<str>,
        /// `type`.
        check: HostPathCheck,
    },
    /// `image`: the files of an image, for reading only.
    Image {
        /// `reference`.
        reference: Box<str>,
        /// `pullPolicy`.
        pull_policy: PullPolicy,
    },
    /// `configMap`, `secret`, `downwardAPI` or `projected`.
    Files(FileVolume),
}

impl VolumeSource {
    /// The volume, if the agent writes its files, and keeps them up to date.
    #[must_use]
    pub fn files(&self) -> Option<&FileVolume> {
        match self {
            Self::Files(files) => Some(files),
            Self::EmptyDir { .. } | Self::HostPath { .. } | Self::Image { .. } => None,
        }
    }

    /// The kubelet's plugin for such volumes.
    #[must_use]
    pub fn plugin(&self) -> VolumePlugin {
        match self {
            Self::EmptyDir { .. } => VolumePlugin::EmptyDir,
            Self::HostPath { .. } => VolumePlugin::HostPath,
            Self::Image { .. } => VolumePlugin::Image,
            Self::Files(files) => files.plugin(),
        }
    }

    /// Whether containers can only read it, whatever their mounts say.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::EmptyDir { .. } | Self::HostPath { .. } => false,
            Self::Image { .. } | Self::Files(_) => true,
        }
    }

    /// The config maps and secrets that the volume holds, by name.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectKind, &str)> {
        let files = self.files();
        let own = files.and_then(|files| match files {
            FileVolume::ConfigMap(object) => Some((ObjectKind::ConfigMap, &*object.name)),
            FileVolume::Secret(object) => Some((ObjectKind::Secret, &*object.name)),
            FileVolume::DownwardApi { .. } | FileVolume::Projected { .. } => None,
        });
        let sources = files.map_or(&[][..], FileVolume::projections);
        own.into_iter()
            .chain(sources.iter().filter_map(Projection::object))
    }
}

/// A volume whose files the agent writes: from objects of the API server, or from the pod itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileVolume {
    /// `configMap`.
    ConfigMap(ObjectVolume),
    /// `secret`.
    Secret(ObjectVolume),
    /// `downwardAPI`.
    DownwardApi {
        /// `items`.
        items: Vec<DownwardFile>,
        /// `defaultMode`, default 0644.
        default_mode: u32,
    },
    /// `projected`.
    Projected {
        /// `sources`.
        sources: Vec<Projection>,
        /// `defaultMode`, default 0644.
        default_mode: u32,
    },
}

impl FileVolume {
    /// The kubelet's plugin for such volumes.
    #[must_use]
    pub fn plugin(&self) -> VolumePlugin {
        match self {
            Self::ConfigMap(_) => VolumePlugin::ConfigMap,
            Self::Secret(_) => VolumePlugin::Secret,
            Self::DownwardApi { .. } => VolumePlugin::DownwardApi,
            Self::Projected { .. } => VolumePlugin::Projected,
        }
    }

    /// The `sources` of a projected volume; of another volume, nothing.
    #[must_use]
    pub fn projections(&self) -> &[Projection] {
        match self {
            Self::Projected { sources, .. } => sources,
            Self::ConfigMap(_) | Self::Secret(_) | Self::DownwardApi { .. } => &[],
        }
    }
}

/// A `configMap` or `secret`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVolume {
    /// `name` or `secretName` of the object, in the pod's namespace.
    pub name: Box<str>,
    /// `items`; empty means one file for each key.
    pub items: Vec<KeyToPath>,
    /// `defaultMode`: permissions of files whose item gives none; default 0644.
    pub default_mode: u32,
    /// `optional`: the object or its keys may be missing.
    pub optional: bool,
}

/// One entry of `items`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyToPath {
    /// `key`.
    pub key: Box<str>,
    /// `path`: relative, without `..`.
    pub path: Box<str>,
    /// `mode`.
    pub mode: Option<u32>,
}

/// One file of the downward API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownwardFile {
    /// `path`: relative, without `..`.
    pub path: Box<str>,
    /// `fieldRef` or `resourceFieldRef`.
    pub content: DownwardContent,
    /// `mode`.
    pub mode: Option<u32>,
}

/// What a file of the downward API holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownwardContent {
    /// `metadata.labels`: one line `key="value"` each, sorted.
    Labels,
    /// `metadata.annotations`, in the same form.
    Annotations,
    /// One text: a field of the metadata.
    Field(FieldPath),
    /// `resourceFieldRef`; its container is always named.
    Resource(ResourceField),
}

/// One entry of `sources` of a projected volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// `configMap`.
    ConfigMap(ObjectProjection),
    /// `secret`.
    Secret(ObjectProjection),
    /// `downwardAPI`.
    DownwardApi {
        /// `items`.
        items: Vec<DownwardFile>,
    },
    /// `serviceAccountToken`.
    ServiceAccountToken {
        /// `audience`; empty means the API server.
        audience: Box<str>,
        /// `expirationSeconds`, default an hour.
        expiration: Duration,
        /// `path`: relative, without `..`.
        path: Box<str>,
    },
}

impl Projection {
    fn object(&self) -> Option<(ObjectKind, &str)> {
        match self {
            Self::ConfigMap(object) => Some((ObjectKind::ConfigMap, &*object.name)),
            Self::Secret(object) => Some((ObjectKind::Secret, &*object.name)),
            Self::DownwardApi { .. } | Self::ServiceAccountToken { .. } => None,
        }
    }
}

/// A config map or secret within a projected volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectProjection {
    /// `name` of the object, in the pod's namespace.
    pub name: Box<str>,
    /// `items`; empty means one file for each key.
    pub items: Vec<KeyToPath>,
    /// `optional`: the object or its keys may be missing.
    pub optional: bool,
}

/// `emptyDir.medium`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// The node's default medium: a directory.
    Disk,
    /// `Memory`: tmpfs.
    Memory,
}

/// `hostPath.type`: what must be there before the pod starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPathCheck {
    /// Empty: no check.
    Unchecked,
    /// `DirectoryOrCreate`: made with mode 0755.
    DirectoryOrCreate,
    /// `Directory`.
    Directory,
    /// `FileOrCreate`: made with mode 0644; its directory must exist.
    FileOrCreate,
    /// `File`.
    File,
    /// `Socket`.
    Socket,
    /// `CharDevice`.
    CharDevice,
    /// `BlockDevice`.
    BlockDevice,
}

impl HostPathCheck {
    /// The value of `hostPath.type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchecked => "",
            Self::DirectoryOrCreate => "DirectoryOrCreate",
            Self::Directory => "Directory",
            Self::FileOrCreate => "FileOrCreate",
            Self::File => "File",
            Self::Socket => "Socket",
            Self::CharDevice => "CharDevice",
            Self::BlockDevice => "BlockDevice",
        }
    }
}
