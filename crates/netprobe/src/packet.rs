//! ICMP echo messages: written, read, and found again in the quotes of errors.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The length of the header of an echo message, in bytes.
pub(crate) const ECHO_HEADER: usize = 8;

/// The version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Family {
    /// IPv4, with ICMP (RFC 792)
    V4,
    /// IPv6, with ICMPv6 (RFC 4443)
    V6,
}

impl Family {
    /// That of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The length of an IP header without options, in bytes.
    #[must_use]
    pub fn ip_header(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    const fn echo_request(self) -> u8 {
        match self {
            Self::V4 => 8,
            Self::V6 => 128,
        }
    }

    const fn echo_reply(self) -> u8 {
        match self {
            Self::V4 => 0,
            Self::V6 => 129,
        }
    }
}

/// Why bytes are not an echo reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Shorter than its headers.
    #[error("the message ends within its header")]
    Truncated,
    /// Its checksum is wrong.
    #[error("the checksum is wrong")]
    Checksum,
    /// Another ICMP message.
    #[error("ICMP type {0} is no echo reply")]
    OtherType(u8),
}

/// An echo reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoReply<'a> {
    /// The identifier: that of the sender's socket.
    pub id: u16,
    /// The sequence number.
    pub sequence: u16,
    /// The data after the header: it repeats that of the request.
    pub data: &'a [u8],
}

/// Replaces `message` with an echo request. Its checksum is that of ICMPv4; with ICMPv6 it is zero,
/// as the kernel computes it, with the addresses.
pub(crate) fn write_echo_request(
    family: Family,
    id: u16,
    sequence: u16,
    data: &[u8],
    message: &mut Vec<u8>,
) {
    message.clear();
    message.extend([family.echo_request(), 0, 0, 0]);
    message.extend(id.to_be_bytes());
    message.extend(sequence.to_be_bytes());
    message.extend(data);
    if family == Family::V4 {
        let sum = checksum(message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Reads an echo reply that a socket received, without an IP header. The kernel has verified the
/// checksum of ICMPv6; that of ICMPv4 is verified here, as raw sockets receive anything.
///
/// # Errors
/// The message is truncated or damaged, or is another one.
pub fn read_echo_reply(family: Family, message: &[u8]) -> Result<EchoReply<'_>, PacketError> {
    let (header, data) = message
        .split_first_chunk::<ECHO_HEADER>()
        .ok_or(PacketError::Truncated)?;
    if header[0] != family.echo_reply() || header[1] != 0 {
        return Err(PacketError::OtherType(header[0]));
    }
    if family == Family::V4 && checksum(message) != 0 {
        return Err(PacketError::Checksum);
    }
    Ok(EchoReply {
        id: u16::from_be_bytes([header[4], header[5]]),
        sequence: u16::from_be_bytes([header[6], header[7]]),
        data,
    })
}

/// The identifier and the sequence number of an echo request that an ICMP error quotes; `None` if
/// what it quotes is something else. Routers quote at least these eight bytes.
#[must_use]
pub fn quoted_echo_request(family: Family, quote: &[u8]) -> Option<(u16, u16)> {
    let header = quote.first_chunk::<ECHO_HEADER>()?;
    (header[0] == family.echo_request() && header[1] == 0).then(|| {
        (
            u16::from_be_bytes([header[4], header[5]]),
            u16::from_be_bytes([header[6], header[7]]),
        )
    })
}

/// The payload of an IPv4 packet, as raw sockets receive it; `None` if the header is not
/// valid.
#[must_use]
pub fn behind_ipv4_header(packet: &[u8]) -> Option<&[u8]> {
    let first = *packet.first()?;
    let length = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && length >= 20)
        .then(|| packet.get(length..))
        .flatten()
}

/// The Internet checksum (RFC 1071). That of a message which contains its own checksum is 0.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let mut sum: u64 = words
        .iter()
        .map(|word| u64::from(u16::from_be_bytes(*word)))
        .sum();
    if let [last] = rest {
        sum += u64::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
