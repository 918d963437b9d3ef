//! Datagrams with their control messages, and with the errors that a socket keeps in its queue: what
//! rustix does not offer.

use std::{
    io,
    mem::MaybeUninit,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsFd, AsRawFd},
};

/// A received datagram. Its bytes and its control messages are in the buffers of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Length of the datagram in the buffer, in bytes.
    pub length: usize,
    /// Length of the control messages in the buffer, in bytes. Each begins with a `struct cmsghdr`.
    pub control: usize,
    /// The sender; for an error, the address that the datagram which caused it was sent to.
    pub address: Option<SocketAddr>,
    /// `PACKET_…` of a packet socket.
    pub packet_type: Option<u8>,
    /// The datagram was longer than the buffer.
    pub truncated: bool,
}

/// The queue of a received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Data.
    Received,
    /// The errors of the socket (`IP_RECVERR`, `IPV6_RECVERR`).
    Errors,
}

/// Receives one datagram without waiting.
///
/// # Errors
/// Nothing is there ([`io::ErrorKind::WouldBlock`]), or the socket has a pending error.
pub fn receive(
    socket: impl AsFd,
    bytes: &mut [u8],
    control: &mut [u8],
    queue: Queue,
) -> io::Result<Datagram> {
    let flags = libc::MSG_DONTWAIT
        | match queue {
            Queue::Received => 0,
            Queue::Errors => libc::MSG_ERRQUEUE,
        };
    // As large and as aligned as a `struct sockaddr_storage`.
    let mut name = [0_u64; 16];
    let mut vector = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let mut message = empty_message();
    message.msg_name = name.as_mut_ptr().cast();
    message.msg_namelen = u32::try_from(size_of_val(&name)).unwrap_or_default();
    message.msg_iov = &raw mut vector;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = control.len();
    let length = receive_message(socket.as_fd().as_raw_fd(), &mut message, flags)?;
    let named = usize::try_from(message.msg_namelen).unwrap_or_default();
    let name: Vec<u8> = name.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = &name[..named.min(name.len())];
    Ok(Datagram {
        length: length.min(bytes.len()),
        control: message.msg_controllen.min(control.len()),
        address: socket_address(name),
        packet_type: packet_type(name),
        truncated: message.msg_flags & libc::MSG_TRUNC != 0,
    })
}

#[expect(
    unsafe_code,
    reason = "libc's structure has private padding on some targets"
)]
fn empty_message() -> libc::msghdr {
    // SAFETY: a `msghdr` consists of pointers, lengths and flags, and all of them may be zero.
    unsafe { MaybeUninit::<libc::msghdr>::zeroed().assume_init() }
}

#[expect(
    unsafe_code,
    reason = "rustix hands out no control messages of error queues"
)]
fn receive_message(fd: i32, message: &mut libc::msghdr, flags: i32) -> io::Result<usize> {
    loop {
        // SAFETY: the descriptor is open for the call. The pointers of `message` are those of buffers
        // that the caller borrows mutably for the call, and their lengths are those of the buffers.
        let received = unsafe { libc::recvmsg(fd, message, flags) };
        match usize::try_from(received) {
            Ok(length) => return Ok(length),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// Reads a `struct sockaddr_in` or `struct sockaddr_in6`; `None` for other families, or when it is cut
/// off.
#[must_use]
pub fn socket_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match family {
        libc::AF_INET => {
            let address: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(address), port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(address), port, 0, scope).into())
        }
        _ => None,
    }
}

/// The type of a packet in a `struct sockaddr_ll`.
fn packet_type(bytes: &[u8]) -> Option<u8> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    let is_packet = i32::from(family) == libc::AF_PACKET;
    bytes.get(10).copied().filter(|_| is_packet)
}

/// Sets an option of a socket that rustix does not know, by its level, its name and its value's
/// bytes.
///
/// # Errors
/// The kernel does not know the option, or refuses the value.
#[expect(unsafe_code, reason = "rustix has no binding for these options")]
pub fn set_option(socket: impl AsFd, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and the kernel reads `length` bytes from `value`, which outlives
    // the call.
    let done = unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), length) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An instruction of classic BPF (`linux/filter.h`): code, jump if true, jump if false, value.
pub type Instruction = (u16, u8, u8, u32);

/// Lets a socket receive only what a program accepts.
///
/// # Errors
/// The kernel refuses the program.
pub fn attach_filter(socket: impl AsFd, program: &[Instruction]) -> io::Result<()> {
    let program: Vec<libc::sock_filter> = program
        .iter()
        .map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k })
        .collect();
    // `struct sock_fprog`: the number of instructions, and where they are. The kernel copies them.
    let mut bytes = vec![0; size_of::<libc::sock_fprog>()];
    let count = u16::try_from(program.len()).unwrap_or_default();
    bytes[..2].copy_from_slice(&count.to_ne_bytes());
    let pointer = align_of::<usize>();
    bytes[pointer..].copy_from_slice(&program.as_ptr().addr().to_ne_bytes());
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &bytes)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_datagram_arrives_with_its_sender_and_without_waiting() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mut bytes, mut control) = ([0; 4], [0; 64]);
        let nothing = receive(&receiver, &mut bytes, &mut control, Queue::Received);
        assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        sender
            .send_to(b"hello", receiver.local_addr().unwrap())
            .unwrap();
        let datagram = receive(&receiver, &mut bytes, &mut control, Queue::Received).unwrap();
        let expected = Datagram {
            length: 4,
            control: 0,
            address: Some(sender.local_addr().unwrap()),
            packet_type: None,
            truncated: true,
        };
        assert_eq!((datagram, &bytes), (expected, b"hell"));
    }

    #[test]
    fn the_error_of_a_datagram_is_in_the_queue() {
        let closed = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let on = 1_i32.to_ne_bytes();
        set_option(&sender, libc::IPPROTO_IP, libc::IP_RECVERR, &on).unwrap();
        sender.send_to(b"hello", closed).unwrap();
        let (mut bytes, mut control) = ([0; 64], [0; 512]);
        // On loopback the answer of the kernel is there before the call returns.
        let error = receive(&sender, &mut bytes, &mut control, Queue::Errors).unwrap();
        assert_eq!(error.address, Some(closed));
        assert_eq!(&bytes[..error.length], b"hello");
        assert!(error.control > 0);
    }

    #[test]
    fn addresses_that_are_cut_off_are_none() {
        let mut v4 = vec![0; 16];
        v4[..2].copy_from_slice(&2_u16.to_ne_bytes());
        v4[2..8].copy_from_slice(&[0, 80, 10, 0, 0, 1]);
        assert_eq!(socket_address(&v4), Some(([10, 0, 0, 1], 80).into()));
        let mut v6 = vec![0; 28];
        v6[..2].copy_from_slice(&10_u16.to_ne_bytes());
        v6[23] = 1;
        assert_eq!(socket_address(&v6), Some((Ipv6Addr::LOCALHOST, 0).into()));
        for (bytes, least) in [(v4, 8), (v6, 28)] {
            assert!((0..least).all(|end| socket_address(&bytes[..end]).is_none()));
        }
        assert_eq!(socket_address(&[1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
