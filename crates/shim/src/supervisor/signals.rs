//! Signals that the shim survives.
//!
//! Handlers rather than a mask or SIG_IGN: execve(2) keeps both of those for the program of a
//! child, while it resets handlers.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::atomic::{AtomicI32, Ordering},
};

use rustix::event::EventfdFlags;

/// Signals that terminate a process by default, and that are sent to whole process groups when the
/// agent or its service stops.
const SURVIVED: [i32; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGXFSZ,
];

/// The eventfd that the SIGCHLD handler writes to.
static CHILDREN: AtomicI32 = AtomicI32::new(-1);

extern "C" fn nothing(_: libc::c_int) {}

extern "C" fn child_changed(_: libc::c_int) {
    // errno is restored at the end: the handler may run between a call and the check of its error.
    let one = 1_u64.to_ne_bytes();
    // SAFETY: the call only returns the address of this thread's errno.
    #[allow(unsafe_code)]
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the address is valid as long as the thread lives, and no other thread reads it.
    #[allow(unsafe_code)]
    let before = unsafe { *errno };
    // SAFETY: write is async-signal-safe and reads eight bytes that live on this stack. The
    // descriptor is the event counter, or one that is not open.
    #[allow(unsafe_code)]
    let _ = unsafe { libc::write(CHILDREN.load(Ordering::Relaxed), one.as_ptr().cast(), 8) };
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        *errno = before;
    }
}

/// Installs handlers for signals that the shim must survive.
pub(super) fn install_handlers() -> io::Result<()> {
    SURVIVED
        .into_iter()
        .try_for_each(|signal| handle(signal, nothing))
}

/// An eventfd that becomes readable when a child has exited.
pub(super) fn children() -> io::Result<OwnedFd> {
    let counter = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    // Before the handler is installed, which writes to this descriptor.
    CHILDREN.store(counter.as_raw_fd(), Ordering::Relaxed);
    handle(libc::SIGCHLD, child_changed)?;
    Ok(counter)
}

fn handle(signal: i32, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: every bit pattern of the plain struct is valid; zero is an empty mask.
    #[allow(unsafe_code)]
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
    // SAFETY: the handler is a function that only does what is async-signal-safe, and the struct
    // lives until the call has ended.
    #[allow(unsafe_code)]
    let done = unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
