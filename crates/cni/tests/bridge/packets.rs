//! Frames as a hostile pod may make them, and who sees them.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use rubelet_host::{frames::Frames, netlink::RouteSocket};

use crate::world::Pod;

pub(crate) const EVERYBODY: [u8; 6] = [0xff; 6];

/// All nodes, by their multicast address.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

const ICMPV6: u8 = 58;

/// Opens the frames of an interface of this thread's network namespace.
pub(crate) fn on(name: &str) -> Frames {
    let link = RouteSocket::open().unwrap().link(name).unwrap().unwrap();
    Frames::open(link.index).unwrap()
}

/// The frames of a pod.
pub(crate) fn inside(pod: &Pod) -> Frames {
    pod.inside(|| on("eth0"))
}

/// A pod's hardware address.
pub(crate) fn mac(pod: &Pod) -> [u8; 6] {
    pod.link("eth0").unwrap().mac.try_into().unwrap()
}

/// The link-local address that belongs to a hardware address.
pub(crate) fn link_local([a, b, c, d, e, f]: [u8; 6]) -> Ipv6Addr {
    let short = |high, low| u16::from_be_bytes([high, low]);
    let [i, j, k, l] = [short(a ^ 2, b), short(c, 0xff), short(0xfe, d), short(e, f)];
    Ipv6Addr::new(0xfe80, 0, 0, 0, i, j, k, l)
}

/// A frame with a number at its end that identifies it.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) what: &'static str,
    pub(crate) bytes: Vec<u8>,
    number: [u8; 8],
}

impl Frame {
    pub(crate) fn new(
        what: &'static str,
        to: [u8; 6],
        from: [u8; 6],
        kind: u16,
        packet: &[u8],
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let next = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let number = [*b"rbt#", next].concat().try_into().unwrap();
        let mut packet = packet.to_vec();
        // Bytes after the packet's own length are cut off on the way. Checksums of ICMPv6 are wrong
        // with the number; they are not verified here.
        let grow = |packet: &mut Vec<u8>, at: usize| {
            let length = u16::from_be_bytes([packet[at], packet[at + 1]]) + 8;
            packet[at..at + 2].copy_from_slice(&length.to_be_bytes());
        };
        match kind {
            0x0800 => {
                grow(&mut packet, 2);
                packet[10..12].fill(0);
                let sum = checksum(&packet[..20]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            }
            0x86dd => grow(&mut packet, 4),
            _ => {}
        }
        packet.extend(number);
        Self {
            what,
            bytes: bytes(to, from, kind, &packet),
            number,
        }
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        bytes.windows(8).any(|window| window == self.number)
    }
}

/// A frame as it is.
pub(crate) fn bytes(to: [u8; 6], from: [u8; 6], kind: u16, packet: &[u8]) -> Vec<u8> {
    [&to[..], &from[..], &kind.to_be_bytes(), packet].concat()
}

/// Sends frames and then one that must arrive; returns those that arrived before it.
pub(crate) fn passing(
    from: &Frames,
    frames: &[Frame],
    last: &Frame,
    at: &Frames,
) -> Vec<&'static str> {
    for frame in frames.iter().chain([last]) {
        from.send(&frame.bytes).unwrap();
    }
    let passed = std::cell::RefCell::new(Vec::new());
    let found = at.wait_for(Duration::from_secs(60), |bytes| {
        let known = frames.iter().find(|frame| frame.is_in(bytes));
        passed.borrow_mut().extend(known.map(|frame| frame.what));
        last.is_in(bytes)
    });
    assert!(found.unwrap().is_some(), "{} did not arrive", last.what);
    passed.into_inner()
}

pub(crate) fn udp4(from: Ipv4Addr, to: Ipv4Addr, port: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 1, 0, 0, 64, 17, 0, 0];
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(9u16.to_be_bytes());
    packet.extend(port.to_be_bytes());
    // Without a checksum, which IPv4 allows.
    packet.extend([0, 20, 0, 0]);
    packet.extend(*b"twelve bytes");
    packet
}

pub(crate) fn arp(operation: u16, mac: [u8; 6], address: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let mut packet = vec![0, 1, 8, 0, 6, 4];
    packet.extend(operation.to_be_bytes());
    packet.extend(mac);
    packet.extend(address.octets());
    packet.extend([0; 6]);
    packet.extend(target.octets());
    packet
}

/// An IPv6 packet without extension headers.
pub(crate) fn ipv6(from: Ipv6Addr, to: Ipv6Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
    packet.extend([protocol, 255]);
    packet.extend(from.octets());
    packet.extend(to.octets());
    packet.extend(payload);
    packet
}

/// An ICMPv6 message to all nodes.
pub(crate) fn icmpv6(from: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    ipv6(from, ALL_NODES, ICMPV6, &summed(from, message))
}

/// The same behind an extension header that says nothing.
pub(crate) fn icmpv6_behind_options(from: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut payload = vec![ICMPV6, 0, 1, 4, 0, 0, 0, 0];
    payload.extend(summed(from, message));
    ipv6(from, ALL_NODES, 60, &payload)
}

fn summed(from: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut pseudo = [from.octets(), ALL_NODES.octets()].concat();
    pseudo.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    pseudo.extend([0, 0, 0, ICMPV6]);
    pseudo.extend(message);
    let mut message = message.to_vec();
    message[2..4].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    message
}

/// A router that offers itself for everything, and addresses of a range.
pub(crate) fn router_advertisement(from: Ipv6Addr, range: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![134, 0, 0, 0, 64, 0, 0x07, 0x08];
    message.extend([0; 8]);
    // The option of a range: on this link, for addresses of one's own, for an hour.
    message.extend([3, 4, 64, 0xc0]);
    message.extend(3600u32.to_be_bytes());
    message.extend(3600u32.to_be_bytes());
    message.extend([0; 4]);
    message.extend(range.octets());
    icmpv6(from, &message)
}

/// A neighbour solicitation (135) or advertisement (136) about an address.
pub(crate) fn neighbour(kind: u8, target: Ipv6Addr, mac: [u8; 6]) -> Vec<u8> {
    let flags = if kind == 136 { 0x20 } else { 0 };
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    message.extend([if kind == 136 { 2 } else { 1 }, 1]);
    message.extend(mac);
    message
}

/// A redirect: `target` is the better way to `destination`.
pub(crate) fn redirect(target: Ipv6Addr, destination: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![137, 0, 0, 0, 0, 0, 0, 0];
    message.extend(target.octets());
    message.extend(destination.octets());
    message
}

fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}

pub(crate) fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("{address} is of IPv6"),
    }
}

pub(crate) fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(_) => panic!("{address} is of IPv4"),
    }
}
