//! What an agent can ask for.

use std::{collections::BTreeMap, path::PathBuf};

use rubelet_base::cgroup::CgroupPath;
use rubelet_oci::{IdMapping, NamespaceKind, Process};
use serde::{Deserialize, Serialize};

/// One call. `id` is always the container's identifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Makes the pod's namespaces and mounts, once in a shim's life. Answered with
    /// [`Answer::Sandbox`](super::Answer::Sandbox).
    MakeSandbox(Box<SandboxSetup>),
    /// Makes a container up to the point where its program could start. Answered with
    /// [`Answer::Created`](super::Answer::Created).
    Create(Box<CreateContainer>),
    /// Starts the program of a created container; answered when `execve` has succeeded.
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
        /// Which processes of the container get it.
        target: SignalTarget,
    },
    /// Starts one more process in a running container. Answered with
    /// [`Answer::Exec`](super::Answer::Exec); its end is the event
    /// [`ExecExited`](super::Event::ExecExited).
    Exec(Box<StartExec>),
    /// Opens the log file anew, after it was moved away.
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
        /// Lines.
        height: u16,
    },
    /// Feeds the container's standard input from the one file descriptor that comes with the frame,
    /// until its end; then the input is closed if the container wants it only once. For containers
    /// made with `stdin`.
    FeedStdin {
        /// The container.
        id: String,
    },
    /// Closes the container's standard input for good.
    CloseStdin {
        /// The container.
        id: String,
    },
    /// Forgets a container. What is left of it is killed first; nothing that the agent has made is
    /// removed. A container that isn't known is success, so that this can be repeated.
    Delete {
        /// The container.
        id: String,
    },
    /// Tells everything: [`Answer::State`](super::Answer::State).
    State,
    /// Kills what is left, undoes the mounts of [`Call::MakeSandbox`] and ends the shim. The reply
    /// comes before the end.
    Shutdown,
}

/// Which processes get a signal.
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
    /// Namespaces that the pod gets for itself, of: network, ipc, uts, pid. A kind that is missing
    /// is the host's. `pid` is one that the pod's containers share, with a process that reaps in it.
    pub namespaces: Vec<NamespaceKind>,
    /// A user namespace with these mappings.
    pub user: Option<UserMappings>,
    /// Host name, set in the pod's own UTS namespace.
    pub hostname: String,
    /// Kernel parameters, written inside of the pod's namespaces.
    pub sysctls: BTreeMap<String, String>,
    /// File that the network namespace is bound to; made if it is missing.
    pub bind_net: Option<PathBuf>,
    /// The pod's `/dev/shm`, mounted on the host.
    pub shm: Option<ShmMount>,
    /// A cgroup without others below it, made if it is missing: the reaping process of a shared PID
    /// namespace is put there. `None` leaves it in the shim's.
    #[serde(with = "optional_cgroup")]
    pub cgroup: Option<CgroupPath>,
}

/// A tmpfs for `/dev/shm`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShmMount {
    /// Where; the folder is made if it is missing.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
}

/// Mappings of a user namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UserMappings {
    /// User IDs.
    pub uids: Vec<IdMapping>,
    /// Group IDs.
    pub gids: Vec<IdMapping>,
}

/// One container to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateContainer {
    /// Identifier of the container.
    pub id: String,
    /// Folder with `config.json` and, if [`Self::has_seccomp`], `seccomp.bpf`. The shim writes
    /// `exit.json` there.
    pub bundle: PathBuf,
    /// Who makes it.
    #[serde(default)]
    pub runtime: RuntimeChoice,
    /// Its root file system.
    #[serde(default)]
    pub rootfs: Rootfs,
    /// Its cgroup. For the embedded runtime the agent has made it, with its limits; external
    /// runtimes make the one that `config.json` names, and this must be the same.
    #[serde(with = "cgroup")]
    pub cgroup: CgroupPath,
    /// Log file, in the CRI's format; `None` throws the output away. Its folder must exist.
    #[serde(default)]
    pub log_path: Option<PathBuf>,
    /// Whether its standard input is kept open for [`Call::FeedStdin`]; otherwise it is empty.
    #[serde(default)]
    pub stdin: bool,
    /// Whether the standard input is closed when the first feed ends.
    #[serde(default)]
    pub stdin_once: bool,
    /// Whether it gets a terminal. `config.json` must say the same.
    #[serde(default)]
    pub tty: bool,
    /// Whether there is `seccomp.bpf`: `struct sock_filter[]` in native byte order.
    #[serde(default)]
    pub has_seccomp: bool,
    /// Most bytes that its log takes on disk, 0 for no bound. The shim moves a file with half of
    /// them aside, as `NAME.YYYYMMDD-HHMMSS`, and removes the one that it moved aside before.
    #[serde(default)]
    pub max_log_bytes: u64,
    /// The container whose processes it sees. It must run when this one is made, else the call
    /// fails: the shim holds its PID namespace open, so that no other one can be joined when its
    /// process ID is given to another process. `config.json` must name [`Self::PID_NAMESPACE`] of
    /// the bundle as the path of the PID namespace.
    #[serde(default)]
    pub pid_target: Option<String>,
    /// Longest piece of a line in the log in bytes, 0 for no limit.
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

/// Who makes a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeChoice {
    /// The OCI runtime inside of this program.
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
    /// Folder for its state, `--root`.
    pub root: PathBuf,
    /// Whether it puts cgroups under systemd, `--systemd-cgroup`.
    #[serde(default)]
    pub systemd_cgroup: bool,
}

/// Where a container's root file system comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rootfs {
    /// It is ready at `root.path` of `config.json`.
    #[default]
    Ready,
    /// Layers, mounted on top of each other: by the container's init where only the container sees
    /// it, or for an external runtime on the host at `root.path`, until the container is deleted.
    Overlay {
        /// Read-only layers, the topmost first.
        lower: Vec<PathBuf>,
        /// Where changes go; `None` mounts read-only.
        #[serde(default)]
        upper: Option<PathBuf>,
        /// The kernel's work folder, on the same file system as `upper`.
        #[serde(default)]
        work: Option<PathBuf>,
    },
}

/// One more process in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartExec {
    /// The container.
    pub id: String,
    /// Names the process among those of the container; chosen by the agent, never used twice.
    pub exec_id: String,
    /// What is executed. With `terminal`, the answer brings the terminal's descriptor.
    pub process: Process,
    /// Which standard streams come with the frame; the others are empty. None with `terminal`.
    #[serde(default)]
    pub streams: StreamFds,
}

/// Which standard streams are file descriptors of the frame, in this order.
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
    /// How many descriptors these are.
    #[must_use]
    pub fn count(self) -> usize {
        usize::from(self.stdin) + usize::from(self.stdout) + usize::from(self.stderr)
    }
}

mod cgroup {
    use rubelet_base::cgroup::CgroupPath;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(path: &CgroupPath, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(path.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CgroupPath, D::Error> {
        CgroupPath::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

pub(super) mod optional_cgroup {
    use rubelet_base::cgroup::CgroupPath;
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
