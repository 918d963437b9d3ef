//! Linux-specific settings: namespaces, devices, sysctls, masked paths.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{DeviceKind, LinuxResources, Seccomp, nullable::nullable};

/// `linux` of `config.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Linux {
    /// Namespaces to create or join; the runtime's own is used for a missing type.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Namespace>,
    /// User IDs of the user namespace.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub uid_mappings: Vec<IdMapping>,
    /// Group IDs of the user namespace.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub gid_mappings: Vec<IdMapping>,
    /// Device nodes in addition to the default ones.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Device>,
    /// The container's cgroup: `/path` for cgroupfs, `slice:prefix:name` for systemd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroups_path: Option<String>,
    /// Limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<LinuxResources>,
    /// Propagation of the root mount: `rprivate`, `rslave` or `rshared`; empty is `rprivate`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rootfs_propagation: String,
    /// Seccomp filter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seccomp: Option<Seccomp>,
    /// Sysctls, only written in the container's own namespaces.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub sysctl: BTreeMap<String, String>,
    /// Masked paths. A missing path is not an error.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub masked_paths: Vec<String>,
    /// Read-only paths. A missing path is not an error.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub readonly_paths: Vec<String>,
    /// SELinux label of the mounts; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mount_label: String,
}

impl Linux {
    /// The namespace of that type, unless the container uses the runtime's.
    #[must_use]
    pub fn namespace(&self, kind: NamespaceKind) -> Option<&Namespace> {
        self.namespaces.iter().find(|one| one.kind == kind)
    }
}

/// A namespace to join or create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: NamespaceKind,
    /// The file of the namespace to join; `None` creates a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// Kinds of namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NamespaceKind {
    /// Process IDs.
    Pid,
    /// Network devices, addresses, sockets.
    Network,
    /// Mounts.
    Mount,
    /// System V IPC and POSIX message queues.
    Ipc,
    /// Host and domain name.
    Uts,
    /// User and group IDs, capabilities.
    User,
    /// The root of the visible cgroups.
    Cgroup,
    /// Offsets of the monotonic clocks.
    Time,
}

/// A range of IDs of a user namespace or an idmapped mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdMapping {
    /// The first ID inside.
    #[serde(rename = "containerID")]
    pub container_id: u32,
    /// The first ID outside.
    #[serde(rename = "hostID")]
    pub host_id: u32,
    /// Number of IDs.
    pub size: u32,
}

/// The ID ranges of a user namespace. Records of the runtime and messages to shims contain it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdMappings {
    /// User IDs.
    pub uids: Vec<IdMapping>,
    /// Group IDs.
    pub gids: Vec<IdMapping>,
}

/// A device node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Absolute path inside.
    pub path: PathBuf,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: DeviceKind,
    /// Major number; 0 for a FIFO.
    #[serde(default)]
    pub major: i64,
    /// Minor number; 0 for a FIFO.
    #[serde(default)]
    pub minor: i64,
    /// Permission bits; `None` is 0666.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_mode: Option<u32>,
    /// Owner inside; `None` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Group inside; `None` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
}
