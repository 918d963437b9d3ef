//! New processes by clone3(2), each with a pidfd.

#![expect(unsafe_code, reason = "clone3 is in no library")]

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::process::exit;

/// A new process.
#[derive(Debug)]
pub(crate) struct Child {
    /// Its PID in the caller's PID namespace.
    pub(crate) pid: i32,
    /// Its pidfd.
    pub(crate) pidfd: OwnedFd,
}

/// The kernel's `struct clone_args` as of Linux 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Forks a process that runs `body` and exits with its return value. `flags` are CLONE_NEW… and
/// CLONE_PARENT; `cgroup` is the directory of a version 2 cgroup to start in.
///
/// The calling process must have a single thread.
pub(crate) fn fork(
    flags: libc::c_int,
    cgroup: Option<BorrowedFd<'_>>,
    body: impl FnOnce() -> i32,
) -> io::Result<Child> {
    // CLONE_INTO_CGROUP is missing in the libc crate for some targets.
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: libc::c_int = -1;
    let parent = flags & libc::CLONE_PARENT != 0;
    let mut args = CloneArgs {
        flags: u64::from(flags.cast_unsigned()) | u64::from(libc::CLONE_PIDFD.cast_unsigned()),
        pidfd: (&raw mut pidfd) as u64,
        // With CLONE_PARENT, exit_signal must be 0; the child has the caller's (clone(2)).
        exit_signal: if parent { 0 } else { libc::SIGCHLD as u64 },
        ..CloneArgs::default()
    };
    if let Some(cgroup) = cgroup {
        args.flags |= INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: `args` and `pidfd` outlive the call and have the layout and size that are passed.
    // There is no new stack and no CLONE_VM, so the child continues with a copy of this one, as
    // after fork. The process has a single thread, so no lock is held by a thread that the child
    // lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, size_of::<CloneArgs>()) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // A panic must not unwind into the frames copied from the parent.
            exit(catch_unwind(AssertUnwindSafe(body)).unwrap_or(101))
        }
        pid => {
            // SAFETY: the kernel stored a new descriptor in `pidfd`, which has no other owner.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(pid).map_err(io::Error::other)?;
            Ok(Child { pid, pidfd })
        }
    }
}

/// Waits for a child and reaps it; returns whether its exit status was 0.
pub(crate) fn wait(child: &Child) -> io::Result<bool> {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    use std::os::fd::AsFd;
    loop {
        match waitid(WaitId::PidFd(child.pidfd.as_fd()), WaitIdOptions::EXITED) {
            Ok(ended) => {
                return Ok(ended.is_some_and(|ended| ended.exit_status() == Some(0)));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Creates namespaces for this process (unshare(2)). `flags` must not have CLONE_FILES.
pub(crate) fn unshare(flags: rustix::thread::UnshareFlags) -> io::Result<()> {
    // SAFETY: the descriptor table is not unshared, which is the only thing unsafe about it.
    let result = unsafe { rustix::thread::unshare_unsafe(flags) };
    result.map_err(io::Error::from)
}
