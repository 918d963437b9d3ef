//! Volumes that need no API server.

use crate::resources::Bytes;

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
}

/// `emptyDir.medium`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// The node's default medium: a folder.
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
    /// `FileOrCreate`: made with mode 0644; its folder must exist.
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
