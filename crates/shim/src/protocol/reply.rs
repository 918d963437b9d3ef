//! What a shim answers and reports.

use std::{collections::BTreeMap, path::PathBuf};

use rubelet_base::cgroup::CgroupPath;
use rubelet_oci::NamespaceKind;
use serde::{Deserialize, Serialize};

use super::SandboxSetup;
use crate::ExitRecord;

/// The result of a call that succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// There is nothing to tell.
    Done,
    /// The sandbox is there.
    Sandbox(Box<SandboxState>),
    /// The container is there; its program was not started.
    Created {
        /// Process ID of its init on the host.
        pid: i32,
    },
    /// The process runs. With a terminal, its descriptor comes with the frame.
    Exec {
        /// Process ID on the host.
        pid: i32,
    },
    /// Everything.
    State(Box<State>),
}

/// Why a call was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Of which kind.
    pub kind: FailureKind,
    /// For people: what, where, what to do.
    pub message: String,
}

impl Failure {
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
    /// There is no such container or process.
    NotFound,
    /// That identifier is in use.
    AlreadyExists,
    /// Not in the state that the object is in.
    WrongState,
    /// The arguments make no sense.
    Invalid,
    /// This release doesn't know the call, or can't do it for this runtime.
    Unsupported,
    /// The OCI runtime refused or failed; the message is its own.
    Runtime,
    /// The host refused: no space, no memory, a file that can't be opened.
    Host,
    /// A mistake in the shim.
    #[serde(other)]
    Internal,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A container's init ended, after it was created. `exit.json` is written.
    Exited {
        /// The container.
        container: String,
        /// How it ended.
        exit: ExitRecord,
    },
    /// A process that [`Call::Exec`](super::Call::Exec) started ended.
    ExecExited {
        /// The container.
        container: String,
        /// The process.
        exec_id: String,
        /// As [`ExitRecord::exit_code`].
        exit_code: i32,
        /// The signal that ended it, if one did.
        signal: Option<i32>,
        /// When, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// The reaping process of the shared PID namespace ended, and with it all that was in there.
    PauseExited {
        /// When, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// Something that an operator should know, while the pod goes on.
    Warning {
        /// What.
        message: String,
    },
    /// An event of a later release.
    Unknown,
}

/// Everything a shim knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// Process ID of the shim.
    pub pid: i32,
    /// When it was started, in nanoseconds since 1970.
    pub started_at_ns: u64,
    /// The sandbox, once it is made.
    pub sandbox: Option<SandboxState>,
    /// The containers, by their identifiers.
    pub containers: Vec<ContainerState>,
    /// Sequence number of the latest event, 0 for none.
    pub sequence: u64,
    /// What an operator should know, the latest ones.
    pub warnings: Vec<String>,
}

/// The sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxState {
    /// What it was made from.
    pub setup: SandboxSetup,
    /// Where its namespaces can be joined, for runtimes that want a path: valid while the shim
    /// lives.
    pub namespaces: BTreeMap<String, PathBuf>,
    /// The reaping process of a shared PID namespace, while it lives.
    pub pause_pid: Option<i32>,
}

impl SandboxState {
    /// Where the namespace of that kind can be joined.
    #[must_use]
    pub fn namespace(&self, kind: NamespaceKind) -> Option<&PathBuf> {
        self.namespaces.get(kind_name(kind))
    }
}

/// The name of a kind of namespaces, as `config.json` writes it.
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
    /// What it does.
    pub phase: ContainerPhase,
    /// Its cgroup, as [`CreateContainer::cgroup`](super::CreateContainer::cgroup) said.
    #[serde(default, with = "super::call::optional_cgroup")]
    pub cgroup: Option<CgroupPath>,
    /// Process ID of its init, 0 before it is known.
    #[serde(default)]
    pub pid: i32,
    /// When it was created, in nanoseconds since 1970; 0 before.
    #[serde(default)]
    pub created_at_ns: u64,
    /// When its program was started, in nanoseconds since 1970; 0 before.
    #[serde(default)]
    pub started_at_ns: u64,
    /// How it ended.
    #[serde(default)]
    pub exit: Option<ExitRecord>,
    /// Its processes beside the init, by their exec identifiers.
    #[serde(default)]
    pub execs: BTreeMap<String, i32>,
    /// Its log.
    #[serde(default)]
    pub log: LogState,
}

/// What a container does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerPhase {
    /// It is being made.
    Creating,
    /// It waits for its start.
    Created,
    /// Its program runs.
    Running,
    /// It has ended.
    Exited,
}

/// How the log of a container does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogState {
    /// Lines, or pieces of lines, that could not be written.
    pub lost_lines: u64,
    /// Bytes of those, as they would stand in the log.
    pub lost_bytes: u64,
    /// Why the latest one could not be written.
    pub last_error: Option<String>,
}
