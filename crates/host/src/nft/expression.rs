//! The expressions of a rule. They are evaluated in order; one that does not match ends the rule.
//!
//! Registers are counted in units of four bytes, from 0.

use std::net::IpAddr;

use crate::netlink::message::Messages;

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// `NFPROTO_…`
    fn number(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }

    /// Offset of the source address in the header.
    fn source(self) -> u32 {
        match self {
            Self::V4 => 12,
            Self::V6 => 8,
        }
    }

    /// Offset of the destination address in the header.
    fn destination(self) -> u32 {
        match self {
            Self::V4 => 16,
            Self::V6 => 24,
        }
    }

    /// The protocol number of its ICMP.
    fn icmp(self) -> u8 {
        match self {
            Self::V4 => 1,
            Self::V6 => 58,
        }
    }

    /// The length of an address in bytes.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }
}

/// An expression of a rule.
#[derive(Debug, Clone, Copy)]
pub enum Expression<'a> {
    /// Matches packets of this family.
    Is(Family),
    /// Matches the input interface by name, or by prefix if the name ends with `*`.
    From(&'a str),
    /// Matches packets from any other interface.
    NotFrom(&'a str),
    /// Matches frames with a packet of this protocol (`ETH_P_…`). Frames with a VLAN tag do not
    /// match.
    EtherType(u16),
    /// Matches the destination MAC address against the range.
    EtherDestination([u8; 6], u8),
    /// Matches ARP packets for IPv4 addresses on Ethernet.
    IsEthernetArp,
    /// Matches ICMP or ICMPv6 messages of this type, also after extension headers.
    IcmpType(Family, u8),
    /// Matches the output interface by name, or by prefix if the name ends with `*`.
    To(&'a str),
    /// The source address is in the range (`true`) or outside.
    Source(IpAddr, u8, bool),
    /// The destination address is in the range (`true`) or outside.
    Destination(IpAddr, u8, bool),
    /// The destination is an address of this host.
    DestinationIsLocal,
    /// Loads the source address.
    LoadSource(Family, u32),
    /// Loads the destination address.
    LoadDestination(Family, u32),
    /// Loads the number of the transport protocol.
    LoadProtocol(u32),
    /// Loads the destination port.
    LoadPort(u32),
    /// Loads the name of the input interface.
    LoadInterface(u32),
    /// Loads the source MAC address of the frame.
    LoadEtherSource(u32),
    /// Loads the sender's MAC address in an ARP packet.
    LoadArpMac(u32),
    /// Loads the sender's IPv4 address in an ARP packet.
    LoadArpAddress(u32),
    /// Loads the target address of a neighbour solicitation or advertisement.
    LoadNeighbourTarget(u32),
    /// The key loaded from register 0 on is in the set.
    In(&'a str),
    /// The key loaded from register 0 on is not in the set.
    NotIn(&'a str),
    /// The host's route to the source address does not use the input interface.
    NotFromItsRoute,
    /// The key loaded from register 0 on is in the map; its value is loaded from there on.
    Map(&'a str),
    /// Translates the destination to the address in register 0 and the port after it.
    Redirect(Family),
    /// Translates the source to this host's address; with random ports (`true`), or kept if
    /// possible.
    Masquerade(bool),
    /// Continues in another chain and returns.
    Jump(&'a str),
    /// Returns to the calling chain.
    Return,
    /// Counts the packets that come here.
    Count,
    /// Has the kernel report which rules the packet meets from here on.
    Trace,
    /// Accepts the packet at this hook of this table.
    Accept,
    /// Drops the packet.
    Drop,
}

/// The numbers of the expression `fib`.
mod fib {
    pub(super) const SOURCE_BY_INTERFACE_IF_ANY: u32 = 1 | 8 | 32;
    pub(super) const DESTINATION: u32 = 2;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const KIND_OF_ADDRESS: u32 = 3;
}

/// The offset bases of the expression `payload`.
mod base {
    pub(super) const LINK: u32 = 0;
    pub(super) const NETWORK: u32 = 1;
    pub(super) const TRANSPORT: u32 = 2;
}

/// The key of `meta` by which a packet is traced.
const META_NFTRACE: u32 = 12;

// Register numbers of the kernel: the first one is where 16-byte registers begin, the others have
// four bytes.
fn register(place: u32) -> u32 {
    if place == 0 { 1 } else { 8 + place }
}

impl Expression<'_> {
    pub(super) fn write(&self, list: &mut Messages) {
        match *self {
            Self::Is(family) => {
                meta(list, 15, 0);
                compare(list, true, &[family.number()]);
            }
            Self::From(name) => interface(list, 6, name, true),
            Self::NotFrom(name) => interface(list, 6, name, false),
            Self::To(name) => interface(list, 7, name, true),
            // The protocol of the frame itself: the kernel stores a VLAN tag apart from the frame,
            // and reports the packet after it as the packet's protocol.
            Self::EtherType(kind) => {
                payload(list, base::LINK, 12, 2, 0);
                compare(list, true, &kind.to_be_bytes());
            }
            Self::EtherDestination(mac, prefix) => {
                payload(list, base::LINK, 0, 6, 0);
                masked(list, &mac, prefix, true);
            }
            Self::IsEthernetArp => {
                payload(list, base::NETWORK, 0, 6, 0);
                compare(list, true, &[0, 1, 8, 0, 6, 4]);
            }
            Self::IcmpType(family, kind) => {
                meta(list, 16, 0);
                compare(list, true, &[family.icmp()]);
                payload(list, base::TRANSPORT, 0, 1, 0);
                compare(list, true, &[kind]);
            }
            Self::Source(address, prefix, inside) => {
                range(list, Family::of(address).source(), address, prefix, inside);
            }
            Self::Destination(address, prefix, inside) => {
                let offset = Family::of(address).destination();
                range(list, offset, address, prefix, inside);
            }
            Self::DestinationIsLocal => {
                element(list, "fib", |data| {
                    data.network_number(1, register(0))
                        .network_number(2, fib::KIND_OF_ADDRESS)
                        .network_number(3, fib::DESTINATION);
                });
                compare(list, true, &2u32.to_ne_bytes());
            }
            Self::LoadSource(family, to) => {
                payload(list, base::NETWORK, family.source(), family.width(), to);
            }
            Self::LoadDestination(family, to) => {
                payload(
                    list,
                    base::NETWORK,
                    family.destination(),
                    family.width(),
                    to,
                );
            }
            Self::LoadProtocol(to) => meta(list, 16, to),
            Self::LoadPort(to) => payload(list, base::TRANSPORT, 2, 2, to),
            Self::LoadInterface(to) => meta(list, 6, to),
            Self::LoadEtherSource(to) => payload(list, base::LINK, 6, 6, to),
            Self::LoadArpMac(to) => payload(list, base::NETWORK, 8, 6, to),
            Self::LoadArpAddress(to) => payload(list, base::NETWORK, 14, 4, to),
            Self::LoadNeighbourTarget(to) => payload(list, base::TRANSPORT, 8, 16, to),
            Self::In(set) => lookup(list, set, false),
            Self::NotIn(set) => lookup(list, set, true),
            Self::NotFromItsRoute => {
                element(list, "fib", |data| {
                    data.network_number(1, register(0))
                        .network_number(2, fib::INTERFACE)
                        .network_number(3, fib::SOURCE_BY_INTERFACE_IF_ANY);
                });
                compare(list, true, &[0]);
            }
            Self::Map(set) => element(list, "lookup", |data| {
                data.text(1, set)
                    .network_number(2, register(0))
                    .network_number(3, register(0));
            }),
            Self::Redirect(family) => element(list, "nat", |data| {
                data.network_number(1, 1)
                    .network_number(2, u32::from(family.number()))
                    .network_number(3, register(0))
                    .network_number(5, register(family.width() / 4));
            }),
            Self::Masquerade(by_chance) => element(list, "masq", |data| {
                if by_chance {
                    data.network_number(1, 0x10);
                }
            }),
            Self::Jump(chain) => verdict(list, -3, Some(chain)),
            Self::Return => verdict(list, -5, None),
            Self::Trace => trace(list),
            Self::Count => element(list, "counter", |_| ()),
            Self::Accept => verdict(list, 1, None),
            Self::Drop => verdict(list, 0, None),
        }
    }
}

fn element(list: &mut Messages, name: &str, fill: impl FnOnce(&mut Messages)) {
    list.nest(1, |element| {
        element.text(1, name).nest(2, fill);
    });
}

fn meta(list: &mut Messages, key: u32, to: u32) {
    element(list, "meta", |data| {
        data.network_number(1, register(to)).network_number(2, key);
    });
}

/// Sets the mark of traced packets.
fn trace(list: &mut Messages) {
    element(list, "immediate", |data| {
        data.network_number(1, register(0)).nest(2, |nest| {
            nest.attribute(1, &[1]);
        });
    });
    element(list, "meta", |data| {
        data.network_number(2, META_NFTRACE)
            .network_number(3, register(0));
    });
}

fn payload(list: &mut Messages, base: u32, offset: u32, length: u32, to: u32) {
    element(list, "payload", |data| {
        data.network_number(1, register(to))
            .network_number(2, base)
            .network_number(3, offset)
            .network_number(4, length);
    });
}

fn compare(list: &mut Messages, equal: bool, value: &[u8]) {
    element(list, "cmp", |data| {
        data.network_number(1, register(0))
            .network_number(2, u32::from(!equal))
            .nest(3, |nest| {
                nest.attribute(1, value);
            });
    });
}

fn lookup(list: &mut Messages, set: &str, inverted: bool) {
    element(list, "lookup", |data| {
        data.text(1, set).network_number(2, register(0));
        if inverted {
            data.network_number(5, 1);
        }
    });
}

fn interface(list: &mut Messages, key: u32, name: &str, equal: bool) {
    meta(list, key, 0);
    match name.strip_suffix('*') {
        Some(beginning) => compare(list, equal, beginning.as_bytes()),
        None => {
            let mut bytes = [0; 16];
            let length = name.len().min(15);
            bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
            compare(list, equal, &bytes);
        }
    }
}

fn range(list: &mut Messages, offset: u32, address: IpAddr, prefix: u8, inside: bool) {
    payload(list, base::NETWORK, offset, Family::of(address).width(), 0);
    match address {
        IpAddr::V4(address) => masked(list, &address.octets(), prefix, inside),
        IpAddr::V6(address) => masked(list, &address.octets(), prefix, inside),
    }
}

/// Compares the first `prefix` bits of register 0.
fn masked(list: &mut Messages, value: &[u8], prefix: u8, equal: bool) {
    let mut wanted = value.to_vec();
    let mut mask = Vec::with_capacity(wanted.len());
    let mut left = prefix;
    for byte in &mut wanted {
        let bits = left.min(8);
        left -= bits;
        let part = 0xffu8.checked_shl(u32::from(8 - bits)).unwrap_or(0);
        mask.push(part);
        *byte &= part;
    }
    if mask.iter().any(|&part| part != 0xff) {
        let width = u32::try_from(mask.len()).expect("an address has at most 16 bytes");
        element(list, "bitwise", |data| {
            data.network_number(1, register(0))
                .network_number(2, register(0))
                .network_number(3, width)
                .nest(4, |nest| {
                    nest.attribute(1, &mask);
                })
                .nest(5, |nest| {
                    nest.attribute(1, &vec![0; mask.len()]);
                });
        });
    }
    compare(list, equal, &wanted);
}

fn verdict(list: &mut Messages, code: i32, chain: Option<&str>) {
    element(list, "immediate", |data| {
        data.network_number(1, 0).nest(2, |nest| {
            nest.nest(2, |verdict| {
                verdict.network_number(1, code.cast_unsigned());
                if let Some(chain) = chain {
                    verdict.text(2, chain);
                }
            });
        });
    });
}
