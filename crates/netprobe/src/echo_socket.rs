//! A socket that sends echo requests to one target: without privileges if the kernel allows it, else a
//! raw one.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rubelet_base::error_text;
use rubelet_host::datagram;
use rustix::io::Errno;

use crate::{
    clock::random,
    control::{ControlData, ErrorOrigin, QueuedError},
    icmp_error::IcmpError,
    packet::{
        EchoReply, Family, behind_ipv4_header, quoted_echo_request, read_echo_reply,
        write_echo_request,
    },
    ping::options::Fragmentation,
    sockets::{
        OpenSocket, Queue, SocketKind, bind_any, enable_reports, local_port, only_echo_replies,
        send_past_errors, set_fragmentation, set_ttl,
    },
};

/// Holds what an error quotes. It grows with the requests, since replies are as long.
const BUFFER: usize = 2048;
/// The longest IPv4 header, which raw sockets receive too.
const IP_HEADER: usize = 60;
/// Holds a time stamp, a TTL and an error with an address.
const CONTROL: usize = 256;

/// Why no echo request can be sent.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Neither kind of socket is allowed.
    #[error(
        "no ICMP socket may be opened: this group is not in net.ipv4.ping_group_range ({range}), and a \
         raw socket needs CAP_NET_RAW; run as root, or allow all groups: sysctl -w \
         net.ipv4.ping_group_range=\"0 2147483647\""
    )]
    NotAllowed {
        /// The range that is set.
        range: String,
    },
    /// A socket can't be opened for another reason.
    #[error("cannot open a socket")]
    Open(#[source] io::Error),
    /// There is no way to the target.
    #[error("cannot reach {0}")]
    Connect(IpAddr, #[source] io::Error),
    /// An option can't be set.
    #[error("cannot set {0} of a socket")]
    Option(&'static str, #[source] io::Error),
}

/// A socket that is connected to its target.
#[derive(Debug)]
pub struct EchoSocket {
    fd: OwnedFd,
    family: Family,
    raw: bool,
    id: u16,
    buffer: Vec<u8>,
    message: Vec<u8>,
}

/// A received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// An echo reply to this socket.
    pub reply: EchoReply<'a>,
    /// Length of the ICMP message.
    pub bytes: usize,
    /// The sender.
    pub from: IpAddr,
    /// The kernel's control messages.
    pub control: ControlData,
}

/// An error from the queue of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EchoError {
    /// The sequence number of the request that caused it, if it is quoted.
    pub sequence: Option<u16>,
    /// The sender of the ICMP message; `None` for errors of this machine.
    pub from: Option<IpAddr>,
    /// The ICMP message.
    pub icmp: Option<IcmpError>,
    /// The error.
    pub error: QueuedError,
    /// The kernel's control messages.
    pub control: ControlData,
}

impl EchoError {
    /// The error in the words of ping.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        match (self.icmp, self.error.origin) {
            (Some(icmp), _) => icmp.text(),
            (None, ErrorOrigin::Local) if self.error.errno == libc::EMSGSIZE => {
                format!("local error: message too long, mtu: {}", self.error.info)
            }
            _ => {
                let error = io::Error::from_raw_os_error(self.error.errno);
                format!("local error: {}", error_text(&error))
            }
        }
    }
}

impl EchoSocket {
    /// Opens a socket and connects it to the target.
    ///
    /// # Errors
    /// No kind of socket is allowed, or there is no way to the target.
    pub fn open(
        open: &dyn OpenSocket,
        target: SocketAddr,
        ttl: Option<u8>,
        fragmentation: Option<Fragmentation>,
    ) -> Result<Self, SocketError> {
        let family = Family::of(target.ip());
        let (fd, raw) = open_any(open, family)?;
        let option = |what| move |error| SocketError::Option(what, error);
        enable_reports(&fd, family).map_err(option("the error queue"))?;
        if let Some(ttl) = ttl {
            set_ttl(&fd, family, ttl).map_err(option("the TTL"))?;
        }
        if let Some(fragmentation) = fragmentation {
            set_fragmentation(&fd, family, fragmentation).map_err(option("path MTU discovery"))?;
        }
        let id = if raw {
            let id = u16::try_from(random() & 0xffff).unwrap_or_default();
            only_echo_replies(&fd, family, id).map_err(option("the filter"))?;
            id
        } else {
            // The kernel takes the port of the socket as the identifier of what it sends.
            bind_any(&fd, family, 0).map_err(SocketError::Open)?;
            local_port(&fd).map_err(SocketError::Open)?
        };
        rustix::net::connect(&fd, &SocketAddr::new(target.ip(), 0).with_scope_of(target))
            .map_err(|errno| SocketError::Connect(target.ip(), errno.into()))?;
        Ok(Self {
            fd,
            family,
            raw,
            id,
            buffer: vec![0; BUFFER],
            message: Vec::new(),
        })
    }

    /// The identifier of the requests.
    #[must_use]
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The family of the target.
    #[must_use]
    pub fn family(&self) -> Family {
        self.family
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn send(&mut self, sequence: u16, data: &[u8]) -> io::Result<()> {
        write_echo_request(self.family, self.id, sequence, data, &mut self.message);
        let needed = self.message.len() + IP_HEADER;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        Ok(send_past_errors(&self.fd, &self.message)?)
    }

    /// The next reply, without waiting; `None` when there is none. Replies to other sockets are
    /// skipped, at most as many as `patience`, which is reduced by each datagram.
    pub fn receive(&mut self, patience: &mut u32) -> Option<Received<'_>> {
        let mut control = [0; CONTROL];
        let (length, from, control_length) = loop {
            *patience = patience.checked_sub(1)?;
            let received =
                datagram::receive(&self.fd, &mut self.buffer, &mut control, Queue::Received);
            match received {
                Ok(found) => {
                    let Some(from) = found.address else { continue };
                    let message = message_in(&self.buffer[..found.length], self.family, self.raw);
                    let reply = message.and_then(|message| self.read(message));
                    if reply.is_some() {
                        break (found.length, from.ip(), found.control);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                // The error that a request left behind; it is in the queue too.
                Err(_) => {}
            }
        };
        let message = message_in(&self.buffer[..length], self.family, self.raw)?;
        Some(Received {
            reply: self.read(message)?,
            bytes: message.len(),
            from: from.to_canonical(),
            control: ControlData::read(&control[..control_length]),
        })
    }

    /// The next error in the queue, without waiting; `None` when there is none. Errors of other
    /// sockets are skipped, as in [`Self::receive`].
    pub(crate) fn receive_error(&mut self, patience: &mut u32) -> Option<EchoError> {
        let mut control = [0; CONTROL];
        loop {
            *patience = patience.checked_sub(1)?;
            let queue = Queue::Errors;
            let found = datagram::receive(&self.fd, &mut self.buffer, &mut control, queue).ok()?;
            let control = ControlData::read(&control[..found.control]);
            let Some(error) = control.error else { continue };
            let quoted = quoted_echo_request(self.family, &self.buffer[..found.length]);
            match error.origin {
                ErrorOrigin::Local => {}
                // A raw socket gets the errors of all echo requests to the target.
                ErrorOrigin::Icmp { .. } if quoted.is_none_or(|(id, _)| id != self.id) => continue,
                ErrorOrigin::Icmp { .. } => {}
                ErrorOrigin::Other => continue,
            }
            let (icmp, from) = error.icmp().unzip();
            return Some(EchoError {
                sequence: quoted.map(|(_, sequence)| sequence),
                from: from.flatten(),
                icmp,
                error,
                control,
            });
        }
    }

    fn read<'a>(&self, message: &'a [u8]) -> Option<EchoReply<'a>> {
        let reply = read_echo_reply(self.family, message).ok()?;
        (reply.id == self.id).then_some(reply)
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The ICMP message in what a socket received: raw sockets for IPv4 get the IP header too.
fn message_in(bytes: &[u8], family: Family, raw: bool) -> Option<&[u8]> {
    match raw && family == Family::V4 {
        true => behind_ipv4_header(bytes),
        false => Some(bytes),
    }
}

fn open_any(open: &dyn OpenSocket, family: Family) -> Result<(OwnedFd, bool), SocketError> {
    let refused = |error: &io::Error| {
        let errno = Errno::from_io_error(error);
        matches!(
            errno,
            Some(Errno::ACCESS | Errno::PERM | Errno::PROTONOSUPPORT)
        )
    };
    match open.open(SocketKind::EchoDatagram(family)) {
        Ok(fd) => return Ok((fd, false)),
        Err(error) if refused(&error) => {}
        Err(error) => return Err(SocketError::Open(error)),
    }
    match open.open(SocketKind::EchoRaw(family)) {
        Ok(fd) => Ok((fd, true)),
        Err(error) if refused(&error) => Err(SocketError::NotAllowed {
            range: ping_group_range(),
        }),
        Err(error) => Err(SocketError::Open(error)),
    }
}

fn ping_group_range() -> String {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ping_group_range").unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Keeps the scope of link-local addresses.
trait WithScope {
    fn with_scope_of(self, other: SocketAddr) -> SocketAddr;
}

impl WithScope for SocketAddr {
    fn with_scope_of(mut self, other: SocketAddr) -> SocketAddr {
        if let (Self::V6(address), Self::V6(other)) = (&mut self, other) {
            address.set_scope_id(other.scope_id());
        }
        self
    }
}
