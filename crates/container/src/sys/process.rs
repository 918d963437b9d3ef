//! Changes of the process itself before execve(2).

#![expect(
    unsafe_code,
    reason = "signal dispositions, exec and exit are in no library"
)]

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr,
};

/// Exits with _exit(2), so that exit handlers and destructors of the parent's state do not run
/// twice.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: _exit takes a number and never returns; no destructor or exit handler runs.
    unsafe { libc::_exit(code) }
}

/// Resets all signals to their default and unblocks them, as a new program expects.
pub(crate) fn reset_signals() {
    // The kernel's `struct sigaction`: all zero is SIG_DFL, no flags and an empty mask. The C
    // library's sigaction refuses the signals that it uses itself.
    let default = [0_u64; 4];
    for signal in 1..=64 {
        // SAFETY: the memory is large enough for the structure of every architecture, whose mask
        // has the size that is passed; the old disposition is not requested. No handler of ours is
        // called any more, and what it would have used stays as it is. For SIGKILL and SIGSTOP the
        // kernel refuses, which is fine.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                size_of::<u64>(),
            )
        };
    }
    let mut none = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset writes the whole set.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set was written above; the old mask is not requested.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) };
}

/// Lets the kernel reap children itself.
pub(crate) fn ignore_children() {
    // SAFETY: SIG_IGN is a valid disposition for SIGCHLD.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Waits for signals, forever.
pub(crate) fn pause_forever() -> ! {
    loop {
        // SAFETY: pause takes nothing and touches no memory of ours.
        unsafe { libc::pause() };
    }
}

/// Closes all descriptors but these and the standard ones.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut kept: Vec<RawFd> = kept.iter().map(AsRawFd::as_raw_fd).collect();
    kept.retain(|fd| *fd > 2);
    kept.sort_unstable();
    kept.dedup();
    let mut first = 3;
    for fd in kept {
        close_range(first, fd - 1)?;
        first = fd + 1;
    }
    close_range(first, RawFd::MAX)
}

/// Sets close-on-exec on all descriptors but the standard ones (CLOSE_RANGE_CLOEXEC).
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    // SAFETY: no descriptor is closed now, so that no owner is concerned.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3,
            RawFd::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn close_range(first: RawFd, last: RawFd) -> io::Result<()> {
    if first > last {
        return Ok(());
    }
    // SAFETY: this process is a fork that never returns to the code that owned the descriptors, so
    // no owner will use or close them; those in use are left out by the caller.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Executes a program; returns only on failure.
pub(crate) fn execute(program: &CString, args: &[CString], env: &[CString]) -> io::Error {
    let args = pointers(args);
    let env = pointers(env);
    // SAFETY: all strings end with a zero byte, both lists end with a null pointer, and everything
    // outlives the call.
    unsafe { libc::execve(program.as_ptr(), args.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let strings = strings.iter().map(|string| string.as_ptr());
    strings.chain([ptr::null()]).collect()
}

/// Sets the NIS domain name.
pub(crate) fn set_domain_name(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and the length describe the string.
    let result = unsafe { libc::setdomainname(name.as_ptr().cast(), name.len()) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The working directory by the system call. It begins with `(unreachable)` outside of the root,
/// which the C library's getcwd hides as ENOENT.
pub(crate) fn working_directory() -> io::Result<Vec<u8>> {
    let mut buffer = vec![0_u8; 4096];
    // SAFETY: the pointer and the length describe the buffer.
    let length = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    buffer.truncate(length.saturating_sub(1));
    Ok(buffer)
}
