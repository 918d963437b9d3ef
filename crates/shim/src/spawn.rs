//! How an agent starts a shim, and finds one that is there already. All of it blocks, for a few
//! milliseconds at most.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use rubelet_base::cgroup::CgroupPath;
use rustix::{
    fs::{Mode, OFlags},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    process::{Pid, PidfdFlags, WaitId, WaitIdOptions},
};

/// Name of the socket in a shim's folder.
pub const SOCKET: &str = "shim.sock";

/// The first argument of the program when it is to be a shim.
pub const COMMAND: &str = "shim";

/// What a shim is started with.
#[derive(Debug, Clone, Copy)]
pub struct SpawnOptions<'a> {
    /// The program; usually `/proc/self/exe`.
    pub executable: &'a Path,
    /// The shim's own folder, which exists: its socket is made there.
    pub dir: &'a Path,
    /// The cgroup that the shim moves to, made if it is missing; `None` stays in the agent's, and
    /// dies with it where the agent's service is stopped as a whole.
    pub cgroup: Option<&'a CgroupPath>,
}

/// A shim that was started.
#[derive(Debug)]
pub struct Spawned {
    /// Its process ID.
    pub pid: i32,
    /// A handle of the process: readable when it has ended. To be reaped then, see [`reap`].
    pub pidfd: OwnedFd,
    /// The connection; the shim says hello first.
    pub socket: UnixStream,
}

/// Why there is no shim.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The kernel hands out no sockets or process handles.
    #[error("cannot make a {what} for a shim")]
    Descriptor {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The program can't be executed.
    #[error("cannot execute {} as a shim", executable.display())]
    Execute {
        /// The program.
        executable: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why a shim can't be reached.
#[derive(Debug, thiserror::Error)]
#[error("cannot connect to the shim in {}", dir.display())]
pub struct ConnectError {
    dir: PathBuf,
    source: io::Error,
}

impl ConnectError {
    /// Whether there is no shim, rather than one that can't be reached: no socket, or nobody who
    /// listens at it.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
        )
    }
}

/// Starts a shim. It is a session of its own, and stays when the agent ends.
///
/// # Errors
/// No process was started.
pub fn spawn(options: SpawnOptions<'_>) -> Result<Spawned, SpawnError> {
    let (socket, theirs) = UnixStream::pair().map_err(|source| SpawnError::Descriptor {
        what: "socket",
        source,
    })?;
    let mut command = Command::new(executable(options.executable));
    command
        .arg0("rubelet")
        .arg(COMMAND)
        .arg("--dir")
        .arg(options.dir)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        .env_clear();
    // What external runtimes and the local time need.
    for name in ["PATH", "TZ"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    if let Some(cgroup) = options.cgroup {
        command.arg("--cgroup").arg(cgroup.as_str());
    }
    let child = command.spawn().map_err(|source| SpawnError::Execute {
        executable: options.executable.to_owned(),
        source,
    })?;
    let pid = child.id().cast_signed();
    // It was not reaped, so the number is still its own.
    let pidfd = Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
        .map_err(|error| SpawnError::Descriptor {
            what: "process handle",
            source: error.into(),
        })?;
    Ok(Spawned { pid, pidfd, socket })
}

/// Connects to a shim that an earlier agent has started.
///
/// # Errors
/// There is none, or it doesn't take the connection.
pub fn connect(dir: &Path) -> Result<UnixStream, ConnectError> {
    connect_to(dir).map_err(|source| ConnectError {
        dir: dir.to_owned(),
        source,
    })
}

fn connect_to(dir: &Path) -> io::Result<UnixStream> {
    let folder = open_dir(dir)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::connect(&socket, &address(folder.as_fd())?)?;
    Ok(UnixStream::from(socket))
}

/// Reaps a shim that this process has started, if it has ended; whether there is nothing left to
/// reap. A shim of an earlier agent is reaped by the system.
///
/// # Errors
/// As waitid(2).
pub fn reap(pidfd: BorrowedFd<'_>) -> io::Result<bool> {
    match rustix::process::waitid(
        WaitId::PidFd(pidfd),
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
    ) {
        Ok(ended) => Ok(ended.is_some()),
        Err(rustix::io::Errno::CHILD) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// A folder, to name short paths below it.
pub(crate) fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        dir,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// The address of the socket in an open folder. The folder's own path may be longer than the 107
/// bytes that an address has room for.
pub(crate) fn address(dir: BorrowedFd<'_>) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!(
        "/proc/self/fd/{}/{SOCKET}",
        dir.as_raw_fd()
    ))?)
}

/// The program as it is executed. If it is the one that runs here: in a form that a container can't
/// write to, since processes on their way into a container show it the program that they are still
/// executing. Opened once, kept for ever.
fn executable(path: &Path) -> PathBuf {
    static SEALED: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let own = Path::new("/proc/self/exe");
    // An agent whose program was replaced on disk still is that program.
    let is_this = path == own
        || fs::canonicalize(path)
            .and_then(|path| Ok(path == fs::read_link(own)?))
            .unwrap_or(false);
    let sealed = SEALED.get_or_init(|| rubelet_container::sealed_executable().ok());
    match sealed {
        Some(file) if is_this => format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
        _ => path.to_owned(),
    }
}
