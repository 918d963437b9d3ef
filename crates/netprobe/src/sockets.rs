//! The sockets of probes, opened in this process's network namespace or in another one.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::{AsFd, OwnedFd},
};

use rubelet_host::{
    datagram::{self, Instruction, set_option},
    netns,
};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, Protocol, SendFlags, SocketFlags, SocketType, ipproto,
        sockopt::{
            Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ip_ttl,
            set_ipv6_mtu_discover, set_ipv6_unicast_hops,
        },
    },
};

use crate::{control::SO_TIMESTAMPNS_NEW, packet::Family, ping::options::Fragmentation};

/// A kind of socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketKind {
    /// Echo requests without privileges, for the groups in `net.ipv4.ping_group_range`.
    EchoDatagram(Family),
    /// All ICMP messages; needs `CAP_NET_RAW`.
    EchoRaw(Family),
    /// UDP
    Udp(Family),
    /// TCP
    Tcp(Family),
}

/// Opens sockets in one network namespace, in which they stay wherever they are used.
pub trait OpenSocket: Send + Sync {
    /// Opens a socket that does not block.
    ///
    /// # Errors
    /// The kernel refuses it.
    fn open(&self, kind: SocketKind) -> io::Result<OwnedFd>;
}

/// Opens sockets in the network namespace of the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnNamespace;

impl OpenSocket for OwnNamespace {
    fn open(&self, kind: SocketKind) -> io::Result<OwnedFd> {
        let (family, socket, protocol): (Family, SocketType, Option<Protocol>) = match kind {
            SocketKind::EchoDatagram(family) => (family, SocketType::DGRAM, Some(icmp(family))),
            SocketKind::EchoRaw(family) => (family, SocketType::RAW, Some(icmp(family))),
            SocketKind::Udp(family) => (family, SocketType::DGRAM, None),
            SocketKind::Tcp(family) => (family, SocketType::STREAM, None),
        };
        let family = match family {
            Family::V4 => AddressFamily::INET,
            Family::V6 => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(rustix::net::socket_with(family, socket, flags, protocol)?)
    }
}

/// Opens sockets in the network namespace of a descriptor.
#[derive(Debug)]
pub struct NamespaceOf<T>(pub T);

impl<T: AsFd + Send + Sync> OpenSocket for NamespaceOf<T> {
    fn open(&self, kind: SocketKind) -> io::Result<OwnedFd> {
        netns::within(self.0.as_fd(), || OwnNamespace.open(kind)).map_err(io::Error::other)?
    }
}

fn icmp(family: Family) -> Protocol {
    match family {
        Family::V4 => ipproto::ICMP,
        Family::V6 => ipproto::ICMPV6,
    }
}

/// Turns on what every probe needs: the queue of errors, the TTL of what arrives, and the kernel's
/// time stamps.
///
/// # Errors
/// The kernel knows no queue of errors. A kernel without the other two is not an error.
pub(crate) fn enable_reports(socket: impl AsFd, family: Family) -> io::Result<()> {
    let on = 1_i32.to_ne_bytes();
    let (level, errors, ttl) = match family {
        Family::V4 => (libc::IPPROTO_IP, libc::IP_RECVERR, libc::IP_RECVTTL),
        Family::V6 => (
            libc::IPPROTO_IPV6,
            libc::IPV6_RECVERR,
            libc::IPV6_RECVHOPLIMIT,
        ),
    };
    set_option(&socket, level, errors, &on)?;
    // Without it replies have no TTL.
    let _ = set_option(&socket, level, ttl, &on);
    // Without it times include the delay until this process runs.
    let _ = set_option(&socket, libc::SOL_SOCKET, SO_TIMESTAMPNS_NEW, &on);
    Ok(())
}

/// Sets the TTL or the hop limit of what is sent.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn set_ttl(socket: impl AsFd, family: Family, ttl: u8) -> io::Result<()> {
    match family {
        Family::V4 => set_ip_ttl(socket, u32::from(ttl))?,
        Family::V6 => set_ipv6_unicast_hops(socket, Some(ttl))?,
    }
    Ok(())
}

/// Sets path MTU discovery.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn set_fragmentation(
    socket: impl AsFd,
    family: Family,
    fragmentation: Fragmentation,
) -> io::Result<()> {
    match family {
        Family::V4 => {
            let value = match fragmentation {
                Fragmentation::Do => Ipv4PathMtuDiscovery::DO,
                Fragmentation::Want => Ipv4PathMtuDiscovery::WANT,
                Fragmentation::Dont => Ipv4PathMtuDiscovery::DONT,
                Fragmentation::Probe => Ipv4PathMtuDiscovery::PROBE,
            };
            set_ip_mtu_discover(socket, value)?;
        }
        Family::V6 => {
            let value = match fragmentation {
                Fragmentation::Do => Ipv6PathMtuDiscovery::DO,
                Fragmentation::Want => Ipv6PathMtuDiscovery::WANT,
                Fragmentation::Dont => Ipv6PathMtuDiscovery::DONT,
                Fragmentation::Probe => Ipv6PathMtuDiscovery::PROBE,
            };
            set_ipv6_mtu_discover(socket, value)?;
        }
    }
    Ok(())
}

/// Binds a socket to any address and this port; 0 is a port that the kernel chooses.
///
/// # Errors
/// The port is in use.
pub(crate) fn bind_any(socket: impl AsFd, family: Family, port: u16) -> io::Result<()> {
    let address = match family {
        Family::V4 => SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)),
        Family::V6 => SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)),
    };
    Ok(rustix::net::bind(socket, &address)?)
}

/// The port of the local end; of a socket for echo requests it is their identifier.
///
/// # Errors
/// The socket has no address.
pub(crate) fn local_port(socket: impl AsFd) -> io::Result<u16> {
    let name = rustix::net::getsockname(socket)?;
    SocketAddr::try_from(name)
        .map(|address| address.port())
        .map_err(|_| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

/// Sends a datagram on a connected socket. What the call returns may be the error that an earlier
/// datagram left behind, which is in the queue of errors too; then it is sent again.
///
/// # Errors
/// The datagram is too long, a queue is full, or there are errors again and again.
pub(crate) fn send_past_errors(socket: impl AsFd, bytes: &[u8]) -> rustix::io::Result<()> {
    /// More ICMP errors than can arrive between two calls, unless the socket is flooded.
    const TRIES: u32 = 16;
    let mut last = Errno::AGAIN;
    for _ in 0..TRIES {
        match rustix::net::send(&socket, bytes, SendFlags::empty()) {
            Ok(_) => return Ok(()),
            Err(errno @ (Errno::MSGSIZE | Errno::NOBUFS | Errno::AGAIN)) => return Err(errno),
            Err(errno) => last = errno,
        }
    }
    Err(last)
}

/// Discards all ICMP messages of a raw socket but replies to echo requests with this identifier. A raw
/// socket gets the replies to everybody's, and each would wake this thread and take room in the queue.
///
/// # Errors
/// The kernel refuses it.
pub(crate) fn only_echo_replies(socket: impl AsFd, family: Family, id: u16) -> io::Result<()> {
    // `linux/icmp.h`, `linux/icmpv6.h`. A set bit blocks its type.
    const SOL_RAW: i32 = 255;
    const ICMP_FILTER: i32 = 1;
    const ICMP6_FILTER: i32 = 1;
    match family {
        Family::V4 => {
            let blocked = (!1_u32).to_ne_bytes();
            set_option(&socket, SOL_RAW, ICMP_FILTER, &blocked)?;
        }
        Family::V6 => {
            let mut blocked = [!0_u32; 8];
            blocked[129 / 32] &= !(1 << (129 % 32));
            let bytes: Vec<u8> = blocked.iter().flat_map(|word| word.to_ne_bytes()).collect();
            set_option(&socket, libc::IPPROTO_ICMPV6, ICMP6_FILTER, &bytes)?;
        }
    }
    datagram::attach_filter(socket, &with_identifier(family, id))
}

/// Accepts ICMP messages with this identifier. For IPv4 a raw socket sees the IP header too.
fn with_identifier(family: Family, id: u16) -> Vec<Instruction> {
    /// `X = length of the IPv4 header`
    const SKIP_HEADER: Instruction = (0xb1, 0, 0, 0);
    /// `A = half-word at X + 4`
    const BEHIND_HEADER: Instruction = (0x48, 0, 0, 4);
    /// `A = half-word at 4`
    const AT_START: Instruction = (0x28, 0, 0, 4);
    let mut program = match family {
        Family::V4 => vec![SKIP_HEADER, BEHIND_HEADER],
        Family::V6 => vec![AT_START],
    };
    program.extend([
        (0x15, 0, 1, u32::from(id)),
        (0x06, 0, 0, u32::MAX),
        (0x06, 0, 0, 0),
    ]);
    program
}

pub use datagram::Queue;
