//! Recognizes the echo requests and replies of a session among the packets of an interface.

use crate::{
    packet::{ECHO_HEADER, behind_ipv4_header},
    stamp::SessionKey,
};

/// The length of an IPv6 header, in bytes.
const IPV6_HEADER: usize = 40;
/// ICMPv6, as the next header.
const ICMPV6: u8 = 58;

/// The kind of a captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    /// A request.
    Request,
    /// A reply.
    Reply,
}

/// Reads a packet, from its IP header on. `None` if it is no request or reply of the session with data
/// of this size, whatever it claims: only who knows the key can make one, and addresses may be
/// translated on the way.
#[must_use]
pub fn sighting(packet: &[u8], key: SessionKey, size: usize) -> Option<Sighting> {
    let (message, request, reply) = match packet.first()? >> 4 {
        4 => (behind_ipv4_header(packet)?, 8, 0),
        6 if packet.get(6) == Some(&ICMPV6) => (packet.get(IPV6_HEADER..)?, 128, 129),
        _ => return None,
    };
    let found = match *message.first()? {
        kind if kind == request => Sighting::Request,
        kind if kind == reply => Sighting::Reply,
        _ => return None,
    };
    // Short frames are padded.
    let data = message.get(ECHO_HEADER..ECHO_HEADER + size)?;
    key.read(data, size).ok()??;
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{packet::Family, stamp::Stamp};

    const SIZE: usize = 56;

    fn packet(family: Family, kind: u8, key: SessionKey) -> Vec<u8> {
        let mut data = Vec::new();
        let stamp = Stamp {
            index: 1,
            sent: Duration::from_millis(5),
        };
        key.write(stamp, SIZE, &mut data);
        let mut bytes = match family {
            Family::V4 => {
                let mut header = vec![0x45; 20];
                header[9] = 1;
                header
            }
            Family::V6 => {
                let mut header = vec![0x60; IPV6_HEADER];
                header[6] = ICMPV6;
                header
            }
        };
        bytes.extend([kind, 0, 0, 0, 0, 1, 0, 1]);
        bytes.extend(data);
        bytes
    }

    #[test]
    fn packets_of_the_session_are_recognized_and_no_others() {
        let key = SessionKey::new(7);
        for (family, request, reply) in [(Family::V4, 8, 0), (Family::V6, 128, 129)] {
            let see = |kind, key: SessionKey| {
                sighting(&packet(family, kind, key), SessionKey::new(7), SIZE)
            };
            assert_eq!(see(request, key), Some(Sighting::Request));
            assert_eq!(see(reply, key), Some(Sighting::Reply));
            assert_eq!(see(3, key), None);
            assert_eq!(see(request, SessionKey::new(8)), None);
            let mut padded = packet(family, request, key);
            padded.extend([0; 9]);
            assert_eq!(sighting(&padded, key, SIZE), Some(Sighting::Request));
            for length in 0..packet(family, request, key).len() {
                assert_eq!(sighting(&padded[..length], key, SIZE), None, "{length}");
            }
        }
    }
}
