//! Starts a shim, or connects to a running one. All functions block, for a few milliseconds at
//! most.

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

use rubelet_cgroup_plan::CgroupPath;
use rubelet_container::LaunchError;
use rubelet_host::open_files::limit_as_before;
use rustix::{
    fs::{Mode, OFlags},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    process::{Pid, PidfdFlags, WaitId, WaitIdOptions},
};

/// Name of the socket in a shim's directory.
pub const SOCKET: &str = "shim.sock";

/// The first argument that makes the program a shim.
pub const COMMAND: &str = "shim";

/// The parameters of a shim.
#[derive(Debug, Clone, Copy)]
pub struct SpawnOptions<'a> {
    /// The program; usually `/proc/self/exe`.
    pub executable: &'a Path,
    /// The shim's own directory, which exists: its socket is made there.
    pub dir: &'a Path,
    /// The cgroup that the shim joins, created if it is missing. With `None` the shim stays in the
    /// agent's, and systemd kills it with the agent's service unless that has `KillMode=process`.
    pub cgroup: Option<&'a CgroupPath>,
}

/// A shim that was started.
#[derive(Debug)]
pub struct Spawned {
    /// Its process ID.
    pub pid: i32,
    /// A pidfd: readable when the process has exited, which then must be reaped, see [`reap`].
    pub pidfd: OwnedFd,
    /// The connection; the shim sends Hello first.
    pub socket: UnixStream,
}

/// Why no shim was started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The kernel refuses a socket or a pidfd.
    #[error("cannot create a {what} for a shim")]
    Descriptor {
        /// The kind of descriptor.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The program file can't be protected from containers.
    #[error(
        "cannot protect the program file from containers, so no pod is started: this needs Linux 5.12 (open_tree, mount_setattr) or memfd_create, and a free file descriptor; check SystemCallFilter= and LimitNOFILE= of the service"
    )]
    Unprotected {
        /// Why.
        source: LaunchError,
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
    /// No shim exists (no socket, or no process listens), as opposed to a shim that can't be
    /// reached.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
        )
    }
}

/// Starts a shim in a session of its own. It keeps running when the agent exits.
///
/// # Errors
/// No process was started.
pub fn spawn(options: SpawnOptions<'_>) -> Result<Spawned, SpawnError> {
    let (socket, theirs) = UnixStream::pair().map_err(|source| SpawnError::Descriptor {
        what: "socket",
        source,
    })?;
    let mut command = Command::new(executable(options.executable)?);
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
    // Needed by external runtimes and for local time stamps.
    for name in ["PATH", "TZ"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    if let Some(cgroup) = options.cgroup {
        command.arg("--cgroup").arg(cgroup.as_str());
    }
    // Containers, runtimes and execs inherit the shim's limits.
    limit_as_before(&mut command);
    let child = command.spawn().map_err(|source| SpawnError::Execute {
        executable: options.executable.to_owned(),
        source,
    })?;
    let pid = child.id().cast_signed();
    // It is not reaped yet, so its PID is still valid.
    let pidfd = Pid::from_raw(pid)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()))
        .map_err(|error| SpawnError::Descriptor {
            what: "pidfd",
            source: error.into(),
        })?;
    Ok(Spawned { pid, pidfd, socket })
}

/// Connects to a running shim of an earlier agent.
///
/// # Errors
/// No shim listens there, or it does not accept the connection.
pub fn connect(dir: &Path) -> Result<UnixStream, ConnectError> {
    connect_to(dir).map_err(|source| ConnectError {
        dir: dir.to_owned(),
        source,
    })
}

fn connect_to(dir: &Path) -> io::Result<UnixStream> {
    let directory = open_dir(dir)?;
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::net::connect(&socket, &address(directory.as_fd())?)?;
    Ok(UnixStream::from(socket))
}

/// Reaps a shim that this process has started, if it has exited; returns whether nothing is left to
/// reap. Shims of earlier agents are reaped by init.
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

/// Opens a directory, for short paths below it.
pub(crate) fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        dir,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// The address of the socket, by `/proc/self/fd/N`: the directory's own path may be longer than the
/// 107 bytes of a socket address.
pub(crate) fn address(dir: BorrowedFd<'_>) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!(
        "/proc/self/fd/{}/{SOCKET}",
        dir.as_raw_fd()
    ))?)
}

/// The path to execute. For this program, a protected descriptor that containers can't write to: a
/// process that is entering a container exposes the file it still executes as `/proc/PID/exe`
/// (CVE-2019-5736). Opened once and kept open.
fn executable(path: &Path) -> Result<PathBuf, SpawnError> {
    static SEALED: OnceLock<OwnedFd> = OnceLock::new();
    let own = Path::new("/proc/self/exe");
    // `/proc/self/exe` stays this program even if the file on disk was replaced.
    let is_this = path == own
        || fs::canonicalize(path)
            .and_then(|path| Ok(path == fs::read_link(own)?))
            .unwrap_or(false);
    if !is_this {
        return Ok(path.to_owned());
    }
    let sealed = sealed(&SEALED, rubelet_container::sealed_executable)?;
    Ok(format!("/proc/self/fd/{}", sealed.as_raw_fd()).into())
}

/// The protected program: the cached one, or a new one. A failure is not cached, so the next pod
/// tries again. There is no fallback to the unprotected file.
fn sealed(
    kept: &OnceLock<OwnedFd>,
    seal: impl FnOnce() -> Result<OwnedFd, LaunchError>,
) -> Result<&OwnedFd, SpawnError> {
    if let Some(file) = kept.get() {
        return Ok(file);
    }
    let file = seal().map_err(|source| SpawnError::Unprotected { source })?;
    // With two concurrent calls, one closes its descriptor again.
    Ok(kept.get_or_init(|| file))
}

#[cfg(test)]
mod tests {
    use rubelet_base::ErrorChain;

    use super::*;

    #[test]
    fn a_program_that_cannot_be_protected_is_refused_and_tried_again() {
        let kept = OnceLock::new();
        let refuses = || {
            Err(LaunchError::Step {
                step: "cannot protect the own program file".into(),
                source: io::Error::from_raw_os_error(libc::EMFILE),
            })
        };
        let error = sealed(&kept, refuses).unwrap_err();
        assert!(matches!(error, SpawnError::Unprotected { .. }));
        let text = ErrorChain(&error).to_string();
        for part in ["Linux 5.12", "memfd_create", "the program file", "Too many"] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }

        let null = || Ok(fs::File::open("/dev/null").unwrap().into());
        let first = sealed(&kept, null).unwrap().as_raw_fd();
        let again = sealed(&kept, refuses).unwrap().as_raw_fd();
        assert_eq!(first, again, "a protected program is kept");
    }

    #[test]
    fn only_the_own_program_is_replaced_by_its_protected_form() {
        let own = executable(Path::new("/proc/self/exe")).unwrap();
        assert!(own.starts_with("/proc/self/fd"), "{}", own.display());
        let other = Path::new("/bin/true");
        assert_eq!(executable(other).unwrap(), other);
    }
}
