//! A netlink socket. It stays in the network namespace in which it was opened, whichever thread
//! uses it.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    io::Errno,
    net::{
        AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{self, SocketAddrNetlink},
        sockopt::{Timeout, set_socket_send_buffer_size_force, set_socket_timeout},
    },
};

use super::message::{self, Messages, NetlinkMessage};

const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Error flag: the rejected message is truncated to its header; there is an explanation.
const CAPPED: u16 = 0x100;
const EXPLAINED: u16 = 0x200;
/// Reply flag: the list changed while it was read.
const INTERRUPTED: u16 = 0x10;

/// Flag of every request; without others, it is answered only if it is rejected.
pub(crate) const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
const DUMP: u16 = 0x300;

/// Flags of a message that is acknowledged.
pub(crate) const DO: u16 = REQUEST | ACKNOWLEDGE;
/// Flags of a message that creates an object.
pub(crate) const CREATE: u16 = DO | 0x400 | 0x200;
/// Flags of a message that creates an object unless it exists.
pub(crate) const ENSURE: u16 = DO | 0x400 | 0x100;

/// No reply takes this long, unless the kernel hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Number of datagrams that are read without waiting: a sender may never pause.
const READ_NOW: usize = 256;

/// Number of messages that are sent before their replies are read.
const AT_ONCE: usize = 64;

/// Number of requests for a list that changes while it is read.
const DUMP_TRIES: u32 = 5;

/// Send buffer for the largest transaction, in bytes.
const ROOM: usize = 8 << 20;

/// A netlink error.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// No such socket can be opened: the kernel was built without it, or the process lacks
    /// privileges.
    #[error("cannot open a netlink socket")]
    Open(#[source] io::Error),
    /// The socket failed.
    #[error("cannot exchange messages with the kernel over netlink")]
    Socket(#[source] io::Error),
    /// A message was rejected.
    #[error("cannot {what}{}", if hint.is_empty() { String::new() } else { format!(" ({hint})") })]
    Refused {
        /// The failed operation.
        what: String,
        /// The kernel's explanation besides the error number; often empty.
        hint: String,
        /// The error number.
        source: io::Error,
    },
}

impl NetlinkError {
    /// The kernel's error number, if there is one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Open(source) | Self::Socket(source) | Self::Refused { source, .. } => {
                source.raw_os_error()
            }
        }
    }

    /// Whether the object to create exists already.
    #[must_use]
    pub fn is_exists(&self) -> bool {
        self.errno() == Some(libc::EEXIST)
    }

    /// Whether the object to change or remove does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(
            self.errno(),
            Some(libc::ENODEV | libc::ENOENT | libc::ESRCH | libc::EADDRNOTAVAIL)
        )
    }
}

#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    buffer: Vec<u8>,
}

impl From<OwnedFd> for Socket {
    fn from(fd: OwnedFd) -> Self {
        Self {
            fd,
            buffer: Vec::new(),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    pub(crate) fn route() -> Result<Self, NetlinkError> {
        // NETLINK_ROUTE is protocol 0.
        Self::open(None)
    }

    pub(crate) fn netfilter() -> Result<Self, NetlinkError> {
        let socket = Self::open(Some(netlink::NETFILTER))?;
        // A transaction is one datagram. Without the privilege for a larger buffer, small ones
        // still fit.
        let _ = set_socket_send_buffer_size_force(&socket.fd, ROOM);
        Ok(socket)
    }

    fn open(protocol: Option<Protocol>) -> Result<Self, NetlinkError> {
        let open = || {
            let fd = rustix::net::socket_with(
                AddressFamily::NETLINK,
                SocketType::RAW,
                SocketFlags::CLOEXEC,
                protocol,
            )?;
            set_socket_timeout(&fd, Timeout::Recv, Some(PATIENCE))?;
            // Connected to the kernel. In a pod's namespace privileged processes may send to this
            // socket, and could forge replies; now their messages are dropped.
            rustix::net::connect(&fd, &SocketAddrNetlink::new(0, 0))?;
            Ok(fd)
        };
        let fd = open().map_err(|errno: Errno| NetlinkError::Open(errno.into()))?;
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            switch_on(&fd, option);
        }
        Ok(Self::from(fd))
    }

    /// Sends the messages and waits until the last of them is acknowledged. The first rejected one
    /// is the error; the kernel continues with the following ones.
    pub(crate) fn send(
        &mut self,
        messages: &Messages,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        let mut refused = None;
        // The kernel answers each message before it handles the next one, and the socket has space
        // for a few hundred replies.
        for (bytes, last) in messages.chunks(AT_ONCE) {
            let first = self.converse(bytes, last)?;
            refused = refused.or(first);
        }
        refusal(refused, what)
    }

    /// Like [`Self::send`], if only the message `last` of an nfnetlink batch is acknowledged. A
    /// batch is atomic.
    pub(crate) fn send_until(
        &mut self,
        messages: &Messages,
        last: u32,
        what: impl FnOnce() -> String,
    ) -> Result<(), NetlinkError> {
        let refused = self.converse(messages.bytes(), last)?;
        refusal(refused, what)
    }

    /// Sends messages and reads until `last` is answered. Returns the first error.
    fn converse(&mut self, bytes: &[u8], last: u32) -> Result<Option<(i32, String)>, NetlinkError> {
        self.write(bytes)?;
        let mut refused: Option<(i32, String)> = None;
        let mut acknowledged = false;
        while !acknowledged {
            self.read(|answer| {
                if answer.kind != ERROR {
                    return;
                }
                if let (Some(error), None) = (failure(&answer), &refused) {
                    refused = Some(error);
                }
                // Without any privileges, only the first message of a batch is answered.
                acknowledged |= answer.sequence == last;
            })?;
            if let (false, Some((errno, _))) = (acknowledged, &refused)
                && matches!(*errno, libc::EPERM | libc::EOPNOTSUPP)
            {
                break;
            }
        }
        Ok(refused)
    }

    /// Requests a list and passes each item's payload to `item`. A list that changed meanwhile is
    /// requested again, so that nothing is missed; items may then be reported twice.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        header: &[u8],
        what: &str,
        mut item: impl FnMut(&[u8]),
    ) -> Result<(), NetlinkError> {
        let mut request = Messages::default();
        request.begin(kind, REQUEST | DUMP, header);
        for _ in 0..DUMP_TRIES {
            if self.dump_once(&request, what, &mut item)? {
                break;
            }
        }
        Ok(())
    }

    /// Like [`Self::dump`], but at most a given number of items. The socket can't be used
    /// afterwards, as the rest of a longer list may still arrive.
    pub(crate) fn dump_beginning(
        mut self,
        kind: u16,
        header: &[u8],
        most: usize,
        what: &str,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let mut request = Messages::default();
        request.begin(kind, REQUEST | DUMP, header);
        self.write(request.bytes())?;
        let mut items = Vec::new();
        let (mut ended, mut refused) = (false, None);
        while !ended && items.len() < most {
            self.read(|answer| match answer.kind {
                DONE | ERROR => {
                    ended = true;
                    refused = failure(&answer);
                }
                _ => items.push(answer.payload.to_vec()),
            })?;
        }
        items.truncate(most);
        refusal(refused, || what.to_owned())?;
        Ok(items)
    }

    /// The payloads of a list's items, each once; `narrow` adds the attributes that choose which.
    pub(crate) fn list(
        &mut self,
        kind: u16,
        header: &[u8],
        narrow: impl Fn(&mut Messages),
        what: &str,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let mut request = Messages::default();
        narrow(request.begin(kind, REQUEST | DUMP, header));
        let mut items = Vec::new();
        for _ in 0..DUMP_TRIES {
            items.clear();
            if self.dump_once(&request, what, &mut |item| items.push(item.to_vec()))? {
                break;
            }
        }
        Ok(items)
    }

    /// Reads a list; returns whether it did not change meanwhile.
    fn dump_once(
        &mut self,
        request: &Messages,
        what: &str,
        item: &mut impl FnMut(&[u8]),
    ) -> Result<bool, NetlinkError> {
        self.write(request.bytes())?;
        let mut ended = false;
        let mut whole = true;
        let mut refused = None;
        while !ended {
            self.read(|answer| {
                whole &= answer.flags & INTERRUPTED == 0;
                match answer.kind {
                    DONE | ERROR => {
                        ended = true;
                        refused = failure(&answer);
                    }
                    _ => item(answer.payload),
                }
            })?;
        }
        match refused {
            None => Ok(whole),
            Some((errno, hint)) => Err(NetlinkError::Refused {
                what: what.to_owned(),
                hint,
                source: io::Error::from_raw_os_error(errno),
            }),
        }
    }

    /// Requests one object.
    pub(crate) fn get<T>(
        &mut self,
        messages: &Messages,
        what: &str,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, NetlinkError> {
        self.write(messages.bytes())?;
        let mut take = Some(take);
        let mut found = None;
        let mut refused = None;
        while found.is_none() && refused.is_none() {
            self.read(|answer| {
                if answer.kind == ERROR {
                    refused = failure(&answer);
                } else if let Some(take) = take.take() {
                    found = Some(take(answer.payload));
                }
            })?;
        }
        match (found, refused) {
            (Some(found), _) => Ok(found),
            (None, refused) => {
                let (errno, hint) = refused.unwrap_or_default();
                Err(NetlinkError::Refused {
                    what: what.to_owned(),
                    hint,
                    source: io::Error::from_raw_os_error(errno),
                })
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn port(&self) -> u32 {
        let address = rustix::net::getsockname(&self.fd).unwrap();
        SocketAddrNetlink::try_from(address).unwrap().pid()
    }

    fn write(&self, bytes: &[u8]) -> Result<(), NetlinkError> {
        rustix::net::send(&self.fd, bytes, SendFlags::empty())
            .map(drop)
            .map_err(|errno| NetlinkError::Socket(errno.into()))
    }

    /// Reads what is there, at most [`READ_NOW`] datagrams, without waiting.
    pub(crate) fn read_now(
        &mut self,
        mut each: impl FnMut(NetlinkMessage<'_>),
    ) -> Result<(), NetlinkError> {
        for _ in 0..READ_NOW {
            match self.read_with(RecvFlags::DONTWAIT, &mut each) {
                Err(NetlinkError::Socket(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    break;
                }
                read => read?,
            }
        }
        Ok(())
    }

    fn read(&mut self, each: impl FnMut(NetlinkMessage<'_>)) -> Result<(), NetlinkError> {
        self.read_with(RecvFlags::empty(), each)
    }

    fn read_with(
        &mut self,
        flags: RecvFlags,
        mut each: impl FnMut(NetlinkMessage<'_>),
    ) -> Result<(), NetlinkError> {
        // The kernel fills at most 32 KiB of a list into one datagram.
        self.buffer.resize(32 * 1024, 0);
        let length = loop {
            match rustix::net::recvfrom(&self.fd, &mut self.buffer[..], flags) {
                Ok((length, _, from)) => {
                    // Another process may have sent to the socket before it was connected. A socket
                    // that is not of netlink was passed in, and has a single peer.
                    let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                    match (from.map_or(0, |from| from.pid()), length) {
                        (1.., _) => {}
                        // The peer is gone: there would never be a reply.
                        (0, 0) => {
                            let ended = io::ErrorKind::UnexpectedEof.into();
                            return Err(NetlinkError::Socket(ended));
                        }
                        (0, length) => break length,
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(NetlinkError::Socket(errno.into())),
            }
        };
        message::answers(&self.buffer[..length]).for_each(&mut each);
        Ok(())
    }
}

fn refusal(
    refused: Option<(i32, String)>,
    what: impl FnOnce() -> String,
) -> Result<(), NetlinkError> {
    match refused {
        None => Ok(()),
        Some((errno, hint)) => Err(NetlinkError::Refused {
            what: what(),
            hint,
            source: io::Error::from_raw_os_error(errno),
        }),
    }
}

/// The error of a reply, and the kernel's explanation.
fn failure(answer: &NetlinkMessage<'_>) -> Option<(i32, String)> {
    let number = message::number(answer.payload, 0)
        .unwrap_or(0)
        .cast_signed();
    if number == 0 {
        return None;
    }
    let skip = match answer.kind {
        DONE => 4,
        _ if answer.flags & CAPPED != 0 => 4 + 16,
        _ => 4 + message::number(answer.payload, 4).unwrap_or(16) as usize,
    };
    let hint = answer
        .payload
        .get(skip..)
        .filter(|_| answer.flags & EXPLAINED != 0)
        .and_then(|rest| message::attribute(rest, 1))
        .map(message::text)
        .unwrap_or_default();
    Some((number.wrapping_neg(), hint))
}

/// Requests short, explained replies. Older kernels do not support it and continue without.
#[expect(
    unsafe_code,
    reason = "rustix has no binding for the options of netlink sockets"
)]
fn switch_on(fd: &OwnedFd, option: libc::c_int) {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the kernel reads four bytes from `on`, which outlives
    // the call.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_NETLINK,
            option,
            (&raw const on).cast(),
            4,
        );
    }
}
