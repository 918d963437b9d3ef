//! Copies of the packets that pass an interface.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};

use crate::datagram::{self, Instruction, Queue, attach_filter};

/// All protocols, in network byte order.
const ALL: u16 = 0x0003u16.to_be();

/// `PACKET_OUTGOING`
const OUTGOING: u8 = 4;

/// ICMP and ICMPv6 without extension headers, by the version and the protocol of the IP header.
const ONLY_ICMP: [Instruction; 9] = [
    (0x30, 0, 0, 0),
    (0x54, 0, 0, 0xf0),
    (0x15, 0, 2, 0x40),
    (0x30, 0, 0, 9),
    (0x15, 3, 2, 1),
    (0x30, 0, 0, 6),
    (0x15, 1, 0, 58),
    (0x06, 0, 0, 0),
    (0x06, 0, 0, 0xffff),
];

/// The way of a packet through an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// It arrives.
    In,
    /// It leaves.
    Out,
}

/// Copies of the ICMP packets of one interface, from its creation on. It stays in the network namespace
/// in which it was opened.
#[derive(Debug)]
pub struct PacketTap(OwnedFd);

impl PacketTap {
    /// Opens one for the interface with this index.
    ///
    /// # Errors
    /// There is no such interface, or the process lacks privileges.
    pub fn open(link: u32) -> io::Result<Self> {
        // Without a protocol nothing is received until the socket is bound to the interface.
        let fd = rustix::net::socket_with(
            AddressFamily::PACKET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None::<Protocol>,
        )?;
        attach_filter(&fd, &ONLY_ICMP)?;
        bind(&fd, link)?;
        Ok(Self(fd))
    }

    /// The next packet, from its IP header on, and its way; `None` if there is none now. What is longer
    /// than the buffer is cut off.
    ///
    /// # Errors
    /// The interface is gone or down.
    pub fn next<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<(Direction, &'b [u8])>> {
        let found = match datagram::receive(&self.0, buffer, &mut [], Queue::Received) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            found => found?,
        };
        let direction = match found.packet_type {
            Some(OUTGOING) => Direction::Out,
            _ => Direction::In,
        };
        Ok(Some((direction, &buffer[..found.length])))
    }
}

impl AsFd for PacketTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Binds a packet socket to an interface, for all protocols.
#[expect(unsafe_code, reason = "rustix has no type for link-layer addresses")]
pub(crate) fn bind(fd: &OwnedFd, link: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).unwrap_or_default(),
        sll_protocol: ALL,
        sll_ifindex: link.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = u32::try_from(size_of_val(&address)).unwrap_or_default();
    // SAFETY: the descriptor is open, and the kernel reads `length` bytes from `address`, which
    // outlives the call.
    let done = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
