//! The container as a whole: `config.json` of a bundle.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{IdMapping, Linux, Process, nullable::nullable};

/// `config.json`: everything a runtime needs to know to make one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Version of the specification, [`crate::VERSION`].
    pub oci_version: String,
    /// The first process.
    pub process: Process,
    /// The root file system.
    pub root: Root,
    /// Host name, set only in a UTS namespace that is made for this container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// NIS domain name, as `hostname`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domainname: String,
    /// What is mounted below the root, in order.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Free-form annotations.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    /// What only Linux has.
    pub linux: Linux,
}

/// The root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Root {
    /// Where it is on the host, absolute or relative to the bundle.
    pub path: PathBuf,
    /// Whether processes can only read it. Mounts below it are not concerned.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub readonly: bool,
}

/// Option of a mount: no component of its destination may be a symbolic link; a destination that
/// has one is refused instead of being followed inside of the root. For mounts that nobody asked for
/// at that path. An own option: runtimes other than the embedded one do not know it.
pub const NO_SYMLINKS: &str = "x-rubelet.no-symlinks";

/// Option of an `overlay` mount: a path inside of it that is mounted in place of the whole. It follows
/// the option, and links in it lead nowhere else than into the overlay. An own option: runtimes other
/// than the embedded one do not know it.
pub const SUB_PATH: &str = "x-rubelet.sub-path=";

/// Option of an `overlay` mount: the folder of a layer follows it. There is one for each layer, the
/// topmost first, as the kernel has it since Linux 6.5.
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
    /// Host path of a bind mount; otherwise what the file system takes as its source.
    #[serde(skip_serializing_if = "is_empty_path")]
    pub source: PathBuf,
    /// Options as the runtime specification names them (`ro`, `rro`, `nosuid`, `rbind`, `rslave`,
    /// `idmap`, `ridmap`…); what is no known flag is data for the file system.
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
    /// Whether it binds a file or folder of the host, rather than mounting a file system anew.
    #[must_use]
    pub fn is_bind(&self) -> bool {
        self.kind == "bind" || self.has("bind") || self.has("rbind")
    }

    /// Whether it shows layers of an image, see [`LOWER_DIR`].
    #[must_use]
    pub fn is_layers(&self) -> bool {
        self.kind == "overlay" && !self.is_bind()
    }

    /// Whether that option is among its options.
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
