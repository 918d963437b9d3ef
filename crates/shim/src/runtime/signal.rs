//! Signals to processes, by their pidfds.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd},
};

use super::host_failure;
use crate::protocol::{CallFailure, FailureKind};

/// Sends a signal to a process.
pub(crate) fn send_signal(process: BorrowedFd<'_>, signal: i32) -> Result<(), CallFailure> {
    if !(1..=libc::SIGRTMAX()).contains(&signal) {
        return Err(CallFailure::new(
            FailureKind::Invalid,
            format!("{signal} is not a valid signal"),
        ));
    }
    // SAFETY: the call takes plain numbers and a null pointer, which means a plain signal. The
    // descriptor is open for the time of the borrow.
    #[allow(unsafe_code)]
    let done = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            process.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ESRCH) => Err(CallFailure::new(
            FailureKind::WrongState,
            "the process has exited",
        )),
        _ => Err(host_failure(&format!("cannot send signal {signal}"), error)),
    }
}
