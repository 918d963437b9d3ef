//! Conntrack entries.

use crate::netlink::{
    NetlinkError,
    message::{self, Messages},
    socket::{DO, Socket},
};

const SUBSYSTEM: u16 = 1;
const GET: u16 = 1;
const DELETE: u16 = 2;
const CTA_TUPLE_ORIG: u16 = 1;
const CTA_TUPLE_PROTO: u16 = 2;
const CTA_PROTO_NUM: u16 = 1;
const CTA_PROTO_DST_PORT: u16 = 3;
const CTA_ZONE: u16 = 18;

/// Deletes the conntrack entries of connections of a protocol to one of these ports. Connectionless
/// protocols such as UDP would otherwise keep their old translation as long as packets arrive.
///
/// # Errors
/// The kernel can't list or delete them.
pub fn forget(protocol: u8, ports: &[u16]) -> Result<usize, NetlinkError> {
    let mut found = Vec::new();
    let mut socket = Socket::netfilter()?;
    for family in [2, 10] {
        socket.dump(
            SUBSYSTEM << 8 | GET,
            &[family, 0, 0, 0],
            "list the connections",
            |item| {
                found.extend(matching(item, protocol, ports));
            },
        )?;
    }
    let count = found.len();
    for (family, tuple, zone) in found {
        let mut messages = Messages::default();
        messages
            .begin(SUBSYSTEM << 8 | DELETE, DO, &[family, 0, 0, 0])
            .nest_with(CTA_TUPLE_ORIG, &tuple, |_| ());
        if let Some(zone) = zone {
            messages.attribute(CTA_ZONE, &zone);
        }
        match socket.send(&messages, || "forget a connection".to_owned()) {
            Err(error) if !error.is_missing() => return Err(error),
            _ => {}
        }
    }
    Ok(count)
}

type MatchedFlow = (u8, Vec<u8>, Option<Vec<u8>>);

fn matching(item: &[u8], protocol: u8, ports: &[u16]) -> Option<MatchedFlow> {
    let rest = item.get(4..)?;
    let tuple = message::attribute(rest, CTA_TUPLE_ORIG)?;
    let transport = message::attribute(tuple, CTA_TUPLE_PROTO)?;
    let port = message::attribute(transport, CTA_PROTO_DST_PORT)?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    let matches = message::attribute(transport, CTA_PROTO_NUM)?.first() == Some(&protocol)
        && ports.contains(&port);
    matches.then(|| {
        let zone = message::attribute(rest, CTA_ZONE).map(<[u8]>::to_vec);
        (item[0], tuple.to_vec(), zone)
    })
}
