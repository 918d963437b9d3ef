//! The loopback interface of a network namespace.

#![expect(unsafe_code, reason = "flags of devices are set by an ioctl")]

use std::{io, os::fd::AsRawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Brings up the loopback interface of the current network namespace.
pub(crate) fn up() -> io::Result<()> {
    // The kernel may lack IPv4 or IPv6; interface flags can be set by a socket of either.
    let open = |family| socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let socket = open(AddressFamily::INET).or_else(|_| open(AddressFamily::INET6))?;
    // SAFETY: all zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        // `c_char` is signed on x86 and unsigned on ARM.
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
