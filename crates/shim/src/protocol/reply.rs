//! Replies and events of a shim.

use std::{collections::BTreeMap, path::PathBuf};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_oci::NamespaceKind;
use serde::{Deserialize, Serialize};

use super::SandboxSetup;
use crate::ExitRecord;

/// The result of a call that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShimReply {
    /// No data.
    Done,
    /// The sandbox was created.
    Sandbox(Box<SandboxState>),
    /// The container was created; its program was not started.
    Created {
        /// Process ID of its init on the host.
        pid: i32,
    },
    /// The process runs. With a terminal, its descriptor comes with the frame.
    Exec {
        /// Process ID on the host.
        pid: i32,
    },
    /// The state of the shim.
    State(Box<ShimState>),
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CallFailure {
    /// The kind.
    pub kind: FailureKind,
    /// The message for users.
    pub message: String,
}

impl CallFailure {
    /// A failure of that kind.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// Kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The container or process does not exist.
    NotFound,
    /// The identifier is in use.
    AlreadyExists,
    /// Not possible in the present state.
    WrongState,
    /// Invalid arguments.
    Invalid,
    /// Not supported by this release, or for this runtime.
    Unsupported,
    /// The OCI runtime refused or failed; the message is its own.
    Runtime,
    /// An operation on the host failed: no space, no memory, a file that can't be opened.
    Host,
    /// A bug in the shim.
    #[serde(other)]
    Internal,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A container's init exited after it was created. `exit.json` is written.
    Exited {
        /// The container.
        container: String,
        /// Its exit.
        exit: ExitRecord,
    },
    /// An exec exited.
    ExecExited {
        /// The container.
        container: String,
        /// The process.
        exec_id: String,
        /// As [`ExitRecord::exit_code`].
        exit_code: i32,
        /// The signal that killed it, if any.
        signal: Option<i32>,
        /// Time of the exit, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// The shim closed an attachment because the agent read it too slowly: the rest of the output
    /// is missing there.
    AttachmentOverrun {
        /// The container.
        container: String,
        /// The attachment.
        attach_id: String,
    },
    /// The pause process exited, and the kernel killed all processes of the shared PID namespace.
    PauseExited {
        /// Time of the exit, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// A warning for operators; the pod keeps running.
    Warning {
        /// The text.
        message: String,
    },
    /// An unknown event of a later release.
    Unknown,
}

/// The state of a shim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShimState {
    /// Process ID of the shim.
    pub pid: i32,
    /// Start time of the shim, in nanoseconds since 1970.
    pub started_at_ns: u64,
    /// The sandbox, once it is created.
    pub sandbox: Option<SandboxState>,
    /// The containers, by their identifiers.
    pub containers: Vec<ContainerState>,
    /// Sequence number of the latest event, 0 for none.
    pub sequence: u64,
    /// The latest warnings for operators.
    pub warnings: Vec<String>,
}

/// The sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxState {
    /// Its parameters.
    pub setup: SandboxSetup,
    /// Paths by which its namespaces can be joined; valid while the shim runs.
    pub namespaces: BTreeMap<String, PathBuf>,
    /// The pause process of a shared PID namespace, while it runs.
    pub pause_pid: Option<i32>,
}

impl SandboxState {
    /// The path of a namespace by its kind.
    #[must_use]
    pub fn namespace(&self, kind: NamespaceKind) -> Option<&PathBuf> {
        self.namespaces.get(kind_name(kind))
    }
}

/// The name of a namespace kind in `config.json`.
pub(crate) fn kind_name(kind: NamespaceKind) -> &'static str {
    match kind {
        NamespaceKind::Pid => "pid",
        NamespaceKind::Network => "network",
        NamespaceKind::Mount => "mount",
        NamespaceKind::Ipc => "ipc",
        NamespaceKind::Uts => "uts",
        NamespaceKind::User => "user",
        NamespaceKind::Cgroup => "cgroup",
        NamespaceKind::Time => "time",
    }
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerState {
    /// Its identifier.
    pub id: String,
    /// Its phase.
    pub phase: ContainerPhase,
    /// Its cgroup, as in [`CreateContainer::cgroup`](super::CreateContainer::cgroup).
    #[serde(default, with = "super::call::optional_cgroup")]
    pub cgroup: Option<CgroupPath>,
    /// Process ID of its init, 0 before it is known.
    #[serde(default)]
    pub pid: i32,
    /// Creation time, in nanoseconds since 1970; 0 before.
    #[serde(default)]
    pub created_at_ns: u64,
    /// Start time of its program, in nanoseconds since 1970; 0 before.
    #[serde(default)]
    pub started_at_ns: u64,
    /// Its exit.
    #[serde(default)]
    pub exit: Option<ExitRecord>,
    /// Its execs, by their identifiers.
    #[serde(default)]
    pub execs: BTreeMap<String, i32>,
    /// Its log.
    #[serde(default)]
    pub log: LogState,
}

/// The phase of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerPhase {
    /// It is being created.
    Creating,
    /// It is created, and not started.
    Created,
    /// Its program runs.
    Running,
    /// It has exited.
    Exited,
}

/// The state of a container's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogState {
    /// Lines, or pieces of lines, that could not be written.
    pub lost_lines: u64,
    /// Bytes of those in the log's format.
    pub lost_bytes: u64,
    /// The error of the latest failed write.
    pub last_error: Option<String>,
}
