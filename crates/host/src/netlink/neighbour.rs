//! Neighbours: the MAC addresses of IP addresses.

use std::net::IpAddr;

use super::{
    Changes, NetlinkError, RouteSocket,
    address::{bytes, from_bytes},
    message,
    socket::{DO, ENSURE},
};

const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NUD_PERMANENT: u16 = 0x80;
const NUD_NOARP: u16 = 0x40;
const NTF_MASTER: u8 = 4;
const AF_BRIDGE: u8 = 7;

/// A permanent neighbour entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The index of its interface.
    pub link: u32,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address, if it is one of Ethernet.
    pub mac: Option<[u8; 6]>,
}

impl RouteSocket {
    /// The permanent neighbours, of both families.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn neighbours(&mut self) -> Result<Vec<Neighbour>, NetlinkError> {
        let mut found = Vec::new();
        self.socket.dump(
            libc::RTM_GETNEIGH,
            &[0; 12],
            "list the neighbours",
            |item| {
                found.extend(parse(item));
            },
        )?;
        Ok(found)
    }
}

fn parse(item: &[u8]) -> Option<Neighbour> {
    if ![2, 10].contains(item.first()?) {
        return None;
    }
    if message::short(item, 8)? & NUD_PERMANENT == 0 {
        return None;
    }
    let rest = item.get(12..)?;
    Some(Neighbour {
        link: message::number(item, 4)?,
        address: from_bytes(message::attribute(rest, NDA_DST)?)?,
        mac: message::attribute(rest, NDA_LLADDR).and_then(|mac| mac.try_into().ok()),
    })
}

impl Changes {
    /// Adds a permanent neighbour entry. The kernel does not resolve it on the wire then, and does
    /// not count it against the limit of learned entries (`gc_thresh3`, 1024 for all namespaces
    /// together).
    pub fn add_neighbour(&mut self, link: u32, address: IpAddr, mac: [u8; 6]) -> &mut Self {
        let (family, bytes) = bytes(address);
        self.messages
            .begin(libc::RTM_NEWNEIGH, ENSURE, &header(family, link))
            .attribute(NDA_DST, &bytes)
            .attribute(NDA_LLADDR, &mac);
        self
    }

    /// Adds a static MAC address to a bridge port, so that the bridge does not flood the first
    /// frame to all ports.
    pub fn add_station(&mut self, port: u32, mac: [u8; 6]) -> &mut Self {
        let mut header = header(AF_BRIDGE, port);
        header[8..10].copy_from_slice(&NUD_NOARP.to_ne_bytes());
        header[10] = NTF_MASTER;
        self.messages
            .begin(libc::RTM_NEWNEIGH, ENSURE, &header)
            .attribute(NDA_LLADDR, &mac);
        self
    }

    /// Removes a neighbour entry.
    pub fn delete_neighbour(&mut self, link: u32, address: IpAddr) -> &mut Self {
        let (family, bytes) = bytes(address);
        self.messages
            .begin(libc::RTM_DELNEIGH, DO, &header(family, link))
            .attribute(NDA_DST, &bytes);
        self
    }
}

/// `struct ndmsg`
fn header(family: u8, link: u32) -> [u8; 12] {
    let mut header = [0; 12];
    header[0] = family;
    header[4..8].copy_from_slice(&link.to_ne_bytes());
    header[8..10].copy_from_slice(&NUD_PERMANENT.to_ne_bytes());
    header
}
