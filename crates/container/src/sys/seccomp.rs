//! seccomp filters.

#![expect(unsafe_code, reason = "seccomp is in no library")]

use std::io;

/// Size of the kernel's `struct sock_filter`.
const INSTRUCTION: usize = 8;

/// Loads a filter for this process and everything it executes. Needs no_new_privs or CAP_SYS_ADMIN.
pub(crate) fn load(program: &[u8], flags: u64) -> io::Result<()> {
    let (instructions, rest) = program.as_chunks::<INSTRUCTION>();
    let Ok(length) = u16::try_from(instructions.len()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if length == 0 || !rest.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // The kernel copies the instructions by bytes, so the alignment of the slice is of no interest.
    let program = libc::sock_fprog {
        len: length,
        filter: instructions.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the length counts whole instructions of the slice; the kernel only reads them, and
    // everything outlives the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
