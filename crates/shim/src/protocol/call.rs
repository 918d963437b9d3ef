//! The calls of an agent.

use std::{collections::BTreeMap, path::PathBuf};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_oci::{IdMappings, NamespaceKind, Process};
use serde::{Deserialize, Serialize};

/// One call. `id` is always the container's identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Creates the pod's namespaces and mounts; once per shim. Answered with
    /// [`ShimReply::Sandbox`](super::ShimReply::Sandbox).
    MakeSandbox(Box<SandboxSetup>),
    /// Creates a container up to the point where its program can start. Answered with
    /// [`ShimReply::Created`](super::ShimReply::Created).
    Create(Box<CreateContainer>),
    /// Starts the program of a created container; answered after `execve` has succeeded.
    Start {
        /// The container.
        id: String,
    },
    /// Sends a signal.
    Signal {
        /// The container.
        id: String,
        /// Number of the signal.
        signal: i32,
        /// The processes of the container that get the signal.
        target: SignalTarget,
    },
    /// Starts an exec in a running container. Answered with [`ShimReply::Exec`](super::ShimReply::Exec);
    /// its exit is the event [`ExecExited`](super::Event::ExecExited).
    Exec(Box<StartExec>),
    /// Reopens the log file after a rotation.
    ReopenLog {
        /// The container.
        id: String,
    },
    /// Sets the size of the terminal of a container that has one.
    Resize {
        /// The container.
        id: String,
        /// Columns.
        width: u16,
        /// Rows.
        height: u16,
    },
    /// Feeds the container's standard input from the one file descriptor of the frame until its
    /// end; then closes the input if the container has `stdin_once`. For containers created with
    /// `stdin`. Several feeds may exist at a time; their bytes are interleaved.
    FeedStdin {
        /// The container.
        id: String,
    },
    /// Also copies the container's output, from now on, to the descriptors of the frame: write ends
    /// of pipes, or sockets. Any number of attachments may exist at a time. They end with the
    /// container's output. An attachment that is read too slowly is closed early, with the event
    /// [`AttachmentOverrun`](super::Event::AttachmentOverrun).
    Attach {
        /// The container.
        id: String,
        /// The attachment's identifier, for the event; chosen by the agent and never reused.
        attach_id: String,
        /// The outputs whose descriptors are in the frame. `stdin` is not allowed here, see
        /// [`Call::FeedStdin`]. The output of a terminal is standard output.
        streams: StreamFds,
    },
    /// Closes the container's standard input permanently.
    CloseStdin {
        /// The container.
        id: String,
    },
    /// Deletes a container. Kills its processes first; removes nothing that the agent has created.
    /// Idempotent: an unknown container is success.
    Delete {
        /// The container.
        id: String,
    },
    /// Returns [`ShimReply::State`](super::ShimReply::State).
    State,
    /// Kills all containers, undoes the mounts of [`Call::MakeSandbox`] and exits. The reply is
    /// sent before the exit.
    Shutdown,
}

/// The processes that get a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalTarget {
    /// The container's first process.
    Init,
    /// Every process in the container's cgroup.
    Everyone,
    /// A process that [`Call::Exec`] has started.
    Exec(String),
}

/// The pod's sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SandboxSetup {
    /// Identifier of the sandbox.
    pub id: String,
    /// The pod's own namespaces, of: network, ipc, uts, pid. A missing kind is the host's. `pid` is
    /// shared by the pod's containers, with a pause process that reaps.
    pub namespaces: Vec<NamespaceKind>,
    /// A user namespace with these mappings.
    pub user: Option<IdMappings>,
    /// Host name, set in the pod's own UTS namespace.
    pub hostname: String,
    /// Kernel parameters, written inside of the pod's namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// File that the network namespace is bind-mounted on; created if it is missing.
    pub bind_net: Option<PathBuf>,
    /// The pod's `/dev/shm`, mounted on the host.
    pub shm: Option<ShmMount>,
    /// A leaf cgroup for the pause process of a shared PID namespace, created if it is missing.
    /// `None` leaves it in the shim's.
    #[serde(with = "optional_cgroup")]
    pub cgroup: Option<CgroupPath>,
}

/// A tmpfs for `/dev/shm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShmMount {
    /// The directory, created if it is missing.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
}

/// The parameters of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateContainer {
    /// Identifier of the container.
    pub id: String,
    /// Directory with `config.json` and, if [`Self::has_seccomp`], `seccomp.bpf`. The shim writes
    /// `exit.json` there.
    pub bundle: PathBuf,
    /// The runtime that creates it.
    #[serde(default)]
    pub runtime: RuntimeChoice,
    /// Its root file system.
    #[serde(default)]
    pub rootfs: Rootfs,
    /// Its cgroup. For the embedded runtime the agent creates it, with its limits; external
    /// runtimes create the one in `config.json`, and this must be the same.
    #[serde(with = "cgroup")]
    pub cgroup: CgroupPath,
    /// Log file, in the CRI's format; `None` discards the output. Its directory must exist.
    #[serde(default)]
    pub log_path: Option<PathBuf>,
    /// Keeps its standard input open for [`Call::FeedStdin`]; otherwise the input is empty.
    #[serde(default)]
    pub stdin: bool,
    /// Closes the standard input when the first feed ends.
    #[serde(default)]
    pub stdin_once: bool,
    /// Gives it a terminal. `config.json` must specify the same.
    #[serde(default)]
    pub tty: bool,
    /// The bundle has `seccomp.bpf`: `struct sock_filter[]` in native byte order.
    #[serde(default)]
    pub has_seccomp: bool,
    /// Maximum bytes of its log on disk; 0 is unlimited. The shim rotates a file of half that size
    /// to `NAME.YYYYMMDD-HHMMSS`, and removes the one that it rotated before.
    #[serde(default)]
    pub max_log_bytes: u64,
    /// The container whose PID namespace it joins, which must be running. The shim holds the
    /// namespace open, so that a reused PID can't lead to another one. `config.json` must name
    /// [`Self::PID_NAMESPACE`] of the bundle as the path of the PID namespace.
    #[serde(default)]
    pub pid_target: Option<String>,
    /// Maximum bytes of a log entry's content, beyond which a line is split; 0 is unlimited.
    #[serde(default = "longest_piece")]
    pub max_log_line: usize,
}

impl CreateContainer {
    /// Name of the link in the bundle to the PID namespace of [`Self::pid_target`]. It leads to the
    /// shim's descriptor.
    pub const PID_NAMESPACE: &str = "pid-namespace";
}

/// containerd's and the CRI's default for the longest piece of a log line.
fn longest_piece() -> usize {
    16 << 10
}

/// The runtime that creates a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeChoice {
    /// The embedded runtime.
    #[default]
    Embedded,
    /// A program with the command line of `runc`.
    External(ExternalRuntime),
}

/// A program with the command line of `runc`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalRuntime {
    /// Path of the program.
    pub binary: PathBuf,
    /// Directory for its state, `--root`.
    pub root: PathBuf,
    /// Creates cgroups through systemd, `--systemd-cgroup`.
    #[serde(default)]
    pub systemd_cgroup: bool,
}

/// The source of a container's root file system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rootfs {
    /// It is ready at `root.path` of `config.json`.
    #[default]
    Ready,
    /// Overlay layers: mounted by the container's init in its mount namespace, or, for an external
    /// runtime, on the host at `root.path` until the container is deleted.
    Overlay {
        /// Read-only layers, the topmost first.
        lower: Vec<PathBuf>,
        /// Directory for changes; `None` mounts read-only.
        #[serde(default)]
        upper: Option<PathBuf>,
        /// The kernel's work directory, on the same file system as `upper`.
        #[serde(default)]
        work: Option<PathBuf>,
    },
}

/// An exec in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartExec {
    /// The container.
    pub id: String,
    /// The exec's identifier within the container; chosen by the agent and never reused.
    pub exec_id: String,
    /// The process. With `terminal`, the reply carries the terminal's descriptor.
    pub process: Process,
    /// The standard streams whose descriptors are in the frame; the others are /dev/null. None of
    /// them with `terminal`.
    #[serde(default)]
    pub streams: StreamFds,
}

/// The standard streams whose file descriptors are in the frame, in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamFds {
    /// Standard input.
    pub stdin: bool,
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

impl StreamFds {
    /// Number of descriptors.
    #[must_use]
    pub fn count(self) -> usize {
        usize::from(self.stdin) + usize::from(self.stdout) + usize::from(self.stderr)
    }
}

mod cgroup {
    use rubelet_cgroup_plan::CgroupPath;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(path: &CgroupPath, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(path.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CgroupPath, D::Error> {
        CgroupPath::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

pub(super) mod optional_cgroup {
    use rubelet_cgroup_plan::CgroupPath;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de::Error as _};

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Option<CgroupPath>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        path.as_ref().map(CgroupPath::as_str).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<CgroupPath>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| CgroupPath::parse(&text).map_err(D::Error::custom))
            .transpose()
    }
}
