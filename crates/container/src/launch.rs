//! Forks a container's init.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rubelet_host::cgroup::CgroupTarget;
use rubelet_oci::Spec;
use rustix::{
    fs::{Mode, OFlags},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};

use crate::{
    Gate, Joined, LaunchError, Reports,
    actor::Actor,
    init::{Init, Standard},
    plan::{PidPlan, Plan},
    report::{Reporter, channel},
    standard::Files,
    sys::clone::{self, Child},
};

/// The layers of an overlay file system, all on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Read-only layers, topmost first; at least one.
    pub lower: Vec<PathBuf>,
    /// Where changes go; without it the root file system can't be written.
    pub upper: Option<PathBuf>,
    /// Empty folder on the file system of `upper`; needed with it.
    pub work: Option<PathBuf>,
}

/// Where a container's root file system comes from.
#[derive(Debug, Clone, Copy)]
pub enum RootfsSource<'a> {
    /// The init mounts it in its own mount namespace, where it ends with the container.
    Overlay(&'a Overlay),
    /// A folder that is ready.
    Folder(&'a Path),
}

/// What becomes the standard input, output and error.
#[derive(Debug)]
pub enum Stdio {
    /// Three descriptors. They are closed in the calling process when the call returns.
    Files {
        /// Standard input.
        stdin: OwnedFd,
        /// Standard output.
        stdout: OwnedFd,
        /// Standard error.
        stderr: OwnedFd,
    },
    /// A pseudo terminal made inside of the container; its other end comes with
    /// [`Report::Created`](crate::Report::Created).
    Console(Console),
}

/// Size of a terminal at the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Console {
    /// Lines; 0 leaves the size alone.
    pub height: u16,
    /// Columns.
    pub width: u16,
}

/// A container to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    /// What it is. `spec.root.path` is not looked at.
    pub spec: &'a Spec,
    /// Its root file system.
    pub rootfs: RootfsSource<'a>,
    /// An existing folder of the host on which the root file system is mounted inside of the init's
    /// own mount namespace; nothing of it is seen on the host, and every folder will do.
    pub mount_at: &'a Path,
    /// Its standard input, output and error.
    pub stdio: Stdio,
    /// Joined by the init before anything of the container runs.
    pub cgroup: &'a CgroupTarget,
    /// Namespaces to join instead of the paths in `spec.linux.namespaces`.
    pub namespaces: Joined<'a>,
    /// The compiled filter of system calls, an array of the kernel's `struct sock_filter`.
    pub seccomp: Option<&'a [u8]>,
}

/// An init, or a process that joins a container, on its way.
#[derive(Debug)]
pub struct Launching {
    /// The process, as seen by the caller, whose child it is.
    pub pid: i32,
    /// The same process.
    pub pidfd: OwnedFd,
    /// Whether it is not the init itself. It makes the init, which is a child of the caller too,
    /// tells of it in [`Report::Init`](crate::Report::Init), and ends.
    pub prepares: bool,
    /// What it has to tell; to be polled for readability.
    pub reports: Reports,
    /// Lets it execute its program. Dropped without being opened, the process ends.
    pub gate: Gate,
}

/// Forks the init of a container and returns at once: what is mounted into it may be on a file system
/// that does not answer. With a user namespace it forks the process that prepares the init.
///
/// # Errors
/// The specification can't be carried out, or the kernel refuses a new process.
pub fn launch(launch: Launch<'_>) -> Result<Launching, LaunchError> {
    let Launch {
        spec,
        rootfs,
        mount_at,
        stdio,
        cgroup,
        namespaces,
        seccomp,
    } = launch;
    let plan = Plan::read(spec, rootfs, mount_at, namespaces)?;
    let actor = Actor::read(&spec.process, spec, seccomp)?;
    let (mut reports, gate, reporter) = open_channel()?;
    // A process can begin in its cgroup of version 2, which is faster than being moved there.
    let into = cgroup.dir();
    let init = Init {
        plan,
        actor,
        standard: standard(stdio)?,
        reporter,
        cgroup,
        begins_inside: into.is_some(),
    };
    let prepares = init.plan.user.is_some();
    let child = if prepares {
        reports.expect_init();
        clone::fork(0, into, || init.run_before_user_namespace())
            .map_err(|error| LaunchError::step(FORK, error))?
    } else {
        let (flags, join) = match &init.plan.pid {
            PidPlan::Same => (0, None),
            PidPlan::New => (libc::CLONE_NEWPID, None),
            PidPlan::Join(fd) => {
                let fd = rustix::io::fcntl_dupfd_cloexec(fd.as_fd(), 3);
                (0, Some(fd.map_err(|error| LaunchError::step(FORK, error))?))
            }
        };
        let fork = || clone::fork(flags, into, || init.run());
        match join {
            Some(fd) => in_pid_namespace(fd.as_fd(), fork)?,
            None => fork().map_err(|error| LaunchError::step(FORK, error))?,
        }
    };
    Ok(Launching {
        pid: child.pid,
        pidfd: child.pidfd,
        prepares,
        reports,
        gate,
    })
}

const FORK: &str = "cannot start the container's init";

pub(crate) fn open_channel() -> Result<(Reports, Gate, Reporter), LaunchError> {
    channel().map_err(|error| LaunchError::step("cannot make a socket for the container", error))
}

pub(crate) fn standard(stdio: Stdio) -> Result<Standard, LaunchError> {
    Ok(match stdio {
        Stdio::Files {
            stdin,
            stdout,
            stderr,
        } => {
            let files = Files::new([stdin, stdout, stderr]);
            let what = "cannot take standard input, output and error";
            Standard::Files(files.map_err(|error| LaunchError::step(what, error))?)
        }
        Stdio::Console(size) => Standard::Console(size),
    })
}

/// Forks such that the child is in another process ID namespace.
pub(crate) fn in_pid_namespace(
    namespace: BorrowedFd<'_>,
    fork: impl FnOnce() -> io::Result<Child>,
) -> Result<Child, LaunchError> {
    let failed = |step: &str, error: io::Error| Err(LaunchError::step(step, error));
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let own = match rustix::fs::open("/proc/self/ns/pid", flags, Mode::empty()) {
        Ok(own) => own,
        Err(error) => return failed("cannot open the own process ID namespace", error.into()),
    };
    // Only children are concerned: a process never changes its own.
    let kind = ThreadNameSpaceType::PROCESS_ID;
    if let Err(error) = move_into_thread_name_spaces(namespace, kind) {
        return failed("cannot join the process ID namespace", error.into());
    }
    let child = fork();
    if let Err(error) = move_into_thread_name_spaces(own.as_fd(), kind) {
        return failed("cannot leave the process ID namespace again", error.into());
    }
    match child {
        Ok(child) => Ok(child),
        // What the kernel says when the first process of the namespace is dead.
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => Err(LaunchError::Refused(
            "the container to be joined is not running".to_owned(),
        )),
        Err(error) => failed(FORK, error),
    }
}
