//! The loopback device of a network namespace.

#![expect(unsafe_code, reason = "flags of devices are set by an ioctl")]

use std::{io, os::fd::AsRawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Brings the loopback device of the current network namespace up.
pub(crate) fn up() -> io::Result<()> {
    // Some kernels lack IPv4 or IPv6; flags of devices can be set through either.
    let open = |family| socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = open(AddressFamily::INET).or_else(|_| open(AddressFamily::INET6))?;
    // SAFETY: all zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        // Bytes of C have a sign on x86 and none on ARM.
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads an `ifreq`, whose name ends with a zero byte.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
