//! Limits of a container. A field that is `None` is not changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::nullable::nullable;

/// `linux.resources`, in the units of cgroup version 1; the writer converts them for version 2.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinuxResources {
    /// Rules of the devices cgroup, in order; the last one that matches decides.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceRule>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Number of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<Pids>,
    /// Huge pages, one entry for each size.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub hugepage_limits: Vec<HugepageLimit>,
    /// Files of the version 2 cgroup and their values, written last. Rejected on version 1.
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub unified: BTreeMap<String, String>,
}

/// One rule of the devices cgroup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRule {
    /// True if it allows, false if it denies.
    pub allow: bool,
    /// Type of device; [`DeviceKind::All`] is any.
    #[serde(rename = "type", default = "any")]
    pub kind: DeviceKind,
    /// Major number; `None` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub major: Option<i64>,
    /// Minor number; `None` is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minor: Option<i64>,
    /// Letters of `r` (read), `w` (write), `m` (make the node).
    #[serde(default)]
    pub access: String,
}

/// Kinds of device nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DeviceKind {
    /// A character device.
    #[serde(rename = "c", alias = "u")]
    Char,
    /// A block device.
    #[serde(rename = "b")]
    Block,
    /// A named pipe.
    #[serde(rename = "p")]
    Fifo,
    /// Every device: in rules of the devices cgroup only.
    #[serde(rename = "a")]
    All,
}

fn any() -> DeviceKind {
    DeviceKind::All
}

/// Memory, in bytes. -1 removes a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Limit of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Soft limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<i64>,
    /// Limit of memory and swap together, as version 1 counts it; equal to `limit` is no swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<i64>,
    /// Whether a limit below the current usage must be rejected instead of being enforced by OOM
    /// kills.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_before_update: Option<bool>,
}

/// Processors.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    /// Relative share, 2 to 262144, as `cpu.shares` of version 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<u64>,
    /// Microseconds per period; -1 removes the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<i64>,
    /// Length of a period in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<u64>,
    /// Allowed CPUs, in the kernel's list format; empty leaves them unchanged.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpus: String,
    /// Allowed memory nodes, like `cpus`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mems: String,
    /// 1 gives idle priority (`cpu.idle`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<i64>,
}

/// Number of processes and threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pids {
    /// The limit; -1 removes it.
    pub limit: i64,
}

/// A limit of huge pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HugepageLimit {
    /// Size of a page as the kernel names it in files: `2MB`, `1GB`.
    pub page_size: String,
    /// Limit in bytes.
    pub limit: u64,
}
