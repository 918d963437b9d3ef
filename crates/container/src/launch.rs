//! Forks a container's init.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rubelet_host::cgroup::CgroupTarget;
use rubelet_oci::Spec;
use rustix::{
    fs::{Mode, OFlags},
    thread::{ThreadNameSpaceType, move_into_thread_name_spaces},
};

use crate::{
    ChildReports, Console, JoinedNamespaces, LaunchError, RootfsSource, StartBarrier,
    init::{Init, StdioSetup},
    plan::{ContainerPlan, PidPlan},
    process_setup::ProcessSetup,
    report::{ChildReporter, channel},
    stdio::StdioFiles,
    sys::clone::{self, Child},
};

/// The standard input, output and error.
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
    /// A pseudo terminal created inside of the container; its master comes with
    /// [`ChildReport::Created`](crate::ChildReport::Created).
    Console(Console),
}

/// A container to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Its specification. `spec.root.path` is ignored.
    pub spec: &'a Spec,
    /// Its root file system.
    pub rootfs: RootfsSource<'a>,
    /// Any existing directory of the host: the root file system is mounted there, in the init's
    /// mount namespace only.
    pub mount_at: &'a Path,
    /// Its standard input, output and error.
    pub stdio: Stdio,
    /// The cgroup, joined by the init before anything else.
    pub cgroup: &'a CgroupTarget,
    /// Namespaces to join instead of the paths in `spec.linux.namespaces`.
    pub namespaces: JoinedNamespaces<'a>,
    /// The compiled seccomp filter, an array of `struct sock_filter`.
    pub seccomp: Option<&'a [u8]>,
}

/// An init, or a process that joins a container, during its start.
#[derive(Debug)]
pub struct Launching {
    /// Its PID in the caller's PID namespace; it is a child of the caller.
    pub pid: i32,
    /// Its pidfd.
    pub pidfd: OwnedFd,
    /// It only prepares the init: it forks the init, which is a child of the caller too,
    /// reports it in [`ChildReport::Init`](crate::ChildReport::Init), and exits.
    pub prepares: bool,
    /// Its reports; poll for readability.
    pub reports: ChildReports,
    /// Lets it execute its program. If the barrier is dropped without being opened, the process
    /// exits.
    pub barrier: StartBarrier,
}

/// Forks the init of a container and returns at once, because its mounts may be on a file system
/// that hangs. With a user namespace it forks the process that prepares the init.
///
/// # Errors
/// The specification is invalid or unsupported, or the kernel refuses a new process.
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
    let plan = ContainerPlan::read(spec, rootfs, mount_at, namespaces)?;
    let process_setup = ProcessSetup::read(&spec.process, spec, seccomp)?;
    let (mut reports, barrier, reporter) = open_channel()?;
    // CLONE_INTO_CGROUP is faster than moving the process, which takes a global lock in the kernel.
    let into = cgroup.dir();
    let init = Init {
        plan,
        process_setup,
        stdio: stdio_setup(stdio)?,
        reporter,
        cgroup,
        starts_in_cgroup: into.is_some(),
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
                // A copy, because the closure of the fork takes `init`.
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
        barrier,
    })
}

const FORK: &str = "cannot start the container's init";

pub(crate) fn open_channel() -> Result<(ChildReports, StartBarrier, ChildReporter), LaunchError> {
    channel().map_err(|error| LaunchError::step("cannot create a socket for the container", error))
}

pub(crate) fn stdio_setup(stdio: Stdio) -> Result<StdioSetup, LaunchError> {
    Ok(match stdio {
        Stdio::Files {
            stdin,
            stdout,
            stderr,
        } => {
            let files = StdioFiles::new([stdin, stdout, stderr]);
            let what = "cannot duplicate standard input, output and error";
            StdioSetup::Files(files.map_err(|error| LaunchError::step(what, error))?)
        }
        Stdio::Console(size) => StdioSetup::Console(size),
    })
}

/// Forks a child into another PID namespace.
pub(crate) fn in_pid_namespace(
    namespace: BorrowedFd<'_>,
    fork: impl FnOnce() -> io::Result<Child>,
) -> Result<Child, LaunchError> {
    let failed = |step: &str, error: io::Error| Err(LaunchError::step(step, error));
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let own = match rustix::fs::open("/proc/self/ns/pid", flags, Mode::empty()) {
        Ok(own) => own,
        Err(error) => {
            return failed(
                "cannot open the PID namespace of this process",
                error.into(),
            );
        }
    };
    // setns(2) with a PID namespace affects only children, not this process itself.
    let kind = ThreadNameSpaceType::PROCESS_ID;
    if let Err(error) = move_into_thread_name_spaces(namespace, kind) {
        return failed("cannot join the PID namespace", error.into());
    }
    let child = fork();
    // Before the result is checked: later children of this process must not land in the container.
    if let Err(error) = move_into_thread_name_spaces(own.as_fd(), kind) {
        return failed("cannot return to the original PID namespace", error.into());
    }
    match child {
        Ok(child) => Ok(child),
        // ENOMEM: the init of the PID namespace has exited (pid_namespaces(7)).
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => Err(LaunchError::Refused(
            "the container is not running".to_owned(),
        )),
        Err(error) => failed(FORK, error),
    }
}
