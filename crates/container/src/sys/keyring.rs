//! Kernel keyrings.

#![expect(unsafe_code, reason = "keyctl is in no library")]

use std::io;

const JOIN_SESSION_KEYRING: libc::c_int = 1;

/// Joins a new, empty session keyring, so that keys of the host are not accessible. Does nothing on
/// a kernel without keyrings.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: a null name requests an anonymous keyring; no memory of ours is touched.
    let result = unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    };
    if result >= 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
        error => Err(error),
    }
}
