//! Control messages of received datagrams: time stamps, TTLs, errors. Read as the kernel lays them
//! out, without trust in any length.

use std::{net::IpAddr, time::Duration};

use rubelet_host::datagram::socket_address;

use crate::{icmp_error::IcmpError, packet::Family};

/// `SO_TIMESTAMPNS_NEW`: its seconds have 64 bits on every machine. Linux 5.1 and newer have it.
pub(crate) const SO_TIMESTAMPNS_NEW: i32 = 64;

/// The size of a `struct cmsghdr`: a length, a level, a type.
const HEADER: usize = size_of::<usize>() + 8;
/// The size of a `struct sock_extended_err`.
const EXTENDED_ERROR: usize = 16;

/// `SO_EE_ORIGIN_*` of `linux/errqueue.h`
const ORIGIN_LOCAL: u8 = 1;
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

/// The control messages of one datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ControlData {
    /// The TTL or the hop limit with which it arrived.
    pub ttl: Option<u8>,
    /// When the kernel received it, since the epoch.
    pub received: Option<Duration>,
    /// The error, if it is from the error queue.
    pub error: Option<QueuedError>,
}

/// An entry of a socket's error queue (`struct sock_extended_err`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// The error number.
    pub errno: i32,
    /// The origin of the error.
    pub origin: ErrorOrigin,
    /// Next to the origin: the MTU, if the datagram was too long for it; else 0.
    pub info: u32,
}

impl QueuedError {
    /// The ICMP message that caused it, and its sender if that is known; `None` for other causes.
    #[must_use]
    pub fn icmp(&self) -> Option<(IcmpError, Option<IpAddr>)> {
        let ErrorOrigin::Icmp {
            v6,
            kind,
            code,
            from,
        } = self.origin
        else {
            return None;
        };
        let icmp = IcmpError {
            family: if v6 { Family::V6 } else { Family::V4 },
            kind,
            code,
            mtu: self.info,
        };
        Some((icmp, from))
    }
}

/// The origin of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// The kernel of this machine.
    Local,
    /// An ICMP message, by type and code.
    Icmp {
        /// ICMPv6 rather than ICMPv4.
        v6: bool,
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
        /// The sender of the message.
        from: Option<IpAddr>,
    },
    /// Anything else, such as time stamps of sent datagrams.
    Other,
}

impl ControlData {
    /// Reads control messages. Unknown ones are skipped, and reading ends at one that is longer than
    /// what is left.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut found = Self::default();
        while let Some((level, kind, data, rest)) = next_message(bytes) {
            match (level, kind) {
                (libc::SOL_SOCKET, SO_TIMESTAMPNS_NEW) => found.received = timestamp(data),
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                    let ttl = data.first_chunk().map(|ttl| i32::from_ne_bytes(*ttl));
                    found.ttl = ttl.and_then(|ttl| u8::try_from(ttl).ok());
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    found.error = queued_error(data);
                }
                _ => {}
            }
            bytes = rest;
        }
        found
    }
}

/// The level, the type and the data of the first message, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(i32, i32, &[u8], &[u8])> {
    const WORD: usize = size_of::<usize>();
    let length = usize::from_ne_bytes(*bytes.first_chunk()?);
    let level = i32::from_ne_bytes(*bytes.get(WORD..)?.first_chunk()?);
    let kind = i32::from_ne_bytes(*bytes.get(WORD + 4..)?.first_chunk()?);
    let data = bytes.get(HEADER..length)?;
    let next = length.checked_next_multiple_of(WORD)?;
    Some((level, kind, data, bytes.get(next..).unwrap_or_default()))
}

/// A `struct __kernel_timespec`.
fn timestamp(data: &[u8]) -> Option<Duration> {
    let seconds = i64::from_ne_bytes(*data.first_chunk()?);
    let nanos = i64::from_ne_bytes(*data.get(8..)?.first_chunk()?);
    let nanos = u32::try_from(nanos)
        .ok()
        .filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(u64::try_from(seconds).ok()?, nanos))
}

fn queued_error(data: &[u8]) -> Option<QueuedError> {
    let header = data.first_chunk::<EXTENDED_ERROR>()?;
    let number = |at: usize| {
        u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let from = || socket_address(&data[EXTENDED_ERROR..]).map(|address| address.ip());
    let origin = match header[4] {
        ORIGIN_LOCAL => ErrorOrigin::Local,
        origin @ (ORIGIN_ICMP | ORIGIN_ICMP6) => ErrorOrigin::Icmp {
            v6: origin == ORIGIN_ICMP6,
            kind: header[5],
            code: header[6],
            from: from(),
        },
        _ => ErrorOrigin::Other,
    };
    Some(QueuedError {
        errno: number(0).cast_signed(),
        origin,
        info: number(8),
    })
}

#[cfg(test)]
mod tests;
