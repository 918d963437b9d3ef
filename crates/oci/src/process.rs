//! A process of a container: the first one, or one that joins it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::nullable::nullable;

/// The program, its user, and its privileges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Process {
    /// It gets a pseudo terminal as its standard input, output and error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminal: bool,
    /// Size of that terminal at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_size: Option<ConsoleSize>,
    /// The user.
    pub user: User,
    /// The program and its arguments; never empty in a valid process.
    #[serde(deserialize_with = "nullable")]
    pub args: Vec<String>,
    /// Environment, each `NAME=value`. The program is looked up on its `PATH`.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Working directory, absolute, created if it is missing.
    pub cwd: PathBuf,
    /// Capabilities; `None` keeps those of the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Resource limits.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub rlimits: Vec<Rlimit>,
    /// `no_new_privs`: `execve` can't grant additional privileges.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_new_privileges: bool,
    /// AppArmor profile, already loaded into the kernel; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub apparmor_profile: String,
    /// `oom_score_adj`, -1000 to 1000; `None` keeps the runtime's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_score_adj: Option<i32>,
    /// SELinux label; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selinux_label: String,
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleSize {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
}

/// A user, with IDs of the container's user namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct User {
    /// User ID.
    pub uid: u32,
    /// Group ID.
    pub gid: u32,
    /// `umask`; `None` keeps the default 0022.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// Supplemental groups.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub additional_gids: Vec<u32>,
}

/// The five capability sets, by names with `CAP_`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// The bounding set: the limit of all capabilities.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub bounding: Vec<String>,
    /// The effective set.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub effective: Vec<String>,
    /// The inheritable set: kept by an `execve` of a file with inheritable capabilities.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub inheritable: Vec<String>,
    /// The permitted set: can be made effective.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub permitted: Vec<String>,
    /// The ambient set: kept by any `execve`, also for users other than root.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub ambient: Vec<String>,
}

/// One resource limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimit {
    /// Its name, such as `RLIMIT_NOFILE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The hard limit, up to which a process may raise the soft limit.
    pub hard: u64,
    /// The soft limit, which is in force.
    pub soft: u64,
}
