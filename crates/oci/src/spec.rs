//! The container as a whole: `config.json` of a bundle.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{IdMapping, Linux, Process, nullable::nullable};

/// `config.json`: everything a runtime needs to create a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Version of the specification, [`crate::VERSION`].
    pub oci_version: String,
    /// The first process.
    pub process: Process,
    /// The root file system.
    pub root: Root,
    /// Host name, only set in a UTS namespace that is created for this container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// NIS domain name, like `hostname`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domainname: String,
    /// Mounts below the root, in order.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Free-form annotations.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    /// Linux-specific settings.
    pub linux: Linux,
}

/// The root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Root {
    /// Its path on the host, absolute or relative to the bundle.
    pub path: PathBuf,
    /// It is read-only for processes. Mounts below it are not affected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
}

/// Mount option: no component of the destination may be a symbolic link; a destination with one is
/// rejected instead of being followed inside the root. For mounts that the user did not request at
/// that path. A Rubelet extension: other runtimes do not support it.
pub const NO_SYMLINKS: &str = "x-rubelet.no-symlinks";

/// Option of an `overlay` mount, followed by a path inside it that is mounted instead of the whole.
/// Links in it can't lead out of the overlay. A Rubelet extension: other runtimes do not support
/// it.
pub const SUB_PATH: &str = "x-rubelet.sub-path=";

/// Option of an `overlay` mount, followed by the directory of a layer. One for each layer, the
/// topmost first, as the kernel supports it since Linux 6.5.
pub const LOWER_DIR: &str = "lowerdir+=";

/// One mount below the root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mount {
    /// Absolute path inside of the container.
    pub destination: PathBuf,
    /// Type of the file system; `bind` (or an option `bind` or `rbind`) for a bind mount.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Host path of a bind mount; otherwise the source for the file system.
    #[serde(skip_serializing_if = "is_empty_path")]
    pub source: PathBuf,
    /// Options of the runtime specification (`ro`, `rro`, `nosuid`, `rbind`, `rslave`, `idmap`,
    /// `ridmap`…); unknown ones are data for the file system.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// User IDs of an idmapped mount.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub uid_mappings: Vec<IdMapping>,
    /// Group IDs of an idmapped mount.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub gid_mappings: Vec<IdMapping>,
}

impl Mount {
    /// Reports whether it is a bind mount rather than a new file system.
    #[must_use]
    pub fn is_bind(&self) -> bool {
        self.kind == "bind" || self.has("bind") || self.has("rbind")
    }

    /// Reports whether it mounts layers of an image, see [`LOWER_DIR`].
    #[must_use]
    pub fn is_layers(&self) -> bool {
        self.kind == "overlay" && !self.is_bind()
    }

    /// Reports whether it has that option.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|one| one == option)
    }
}

fn is_empty_path(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

#[cfg(test)]
mod tests;
