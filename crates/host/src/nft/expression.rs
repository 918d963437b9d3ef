//! The parts of a rule. They are run one after the other; one that doesn't match ends the rule.
//!
//! Registers are counted in pieces of four bytes, from 0.

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

    /// How many bytes an address has.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }
}

/// A part of a rule.
#[derive(Debug, Clone, Copy)]
pub enum Expression<'a> {
    /// The packet is of this family.
    Is(Family),
    /// It came in by an interface with this name, or with a name that begins so and ends with `*`.
    From(&'a str),
    /// It goes out by an interface with this name, or with a name that begins so and ends with `*`.
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
    /// What was loaded from register 0 on is in the set.
    In(&'a str),
    /// What was loaded from register 0 on is in the map; its value is loaded from there on.
    Map(&'a str),
    /// Sends the connection to the address in register 0 and the port behind it.
    Redirect(Family),
    /// Gives the connection this host's address; with ports chosen by chance (`true`), or kept
    /// where possible.
    Masquerade(bool),
    /// Goes on in another chain and comes back.
    Jump(&'a str),
    /// Goes back to where the chain was jumped from.
    Return,
    /// Drops the packet.
    Drop,
}

// Numbers of registers as the kernel has them: the first is where 16-byte registers begin, the
// others are of four bytes.
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
            Self::From(name) => interface(list, 6, name),
            Self::To(name) => interface(list, 7, name),
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
                        .network_number(2, 3)
                        .network_number(3, 2);
                });
                compare(list, true, &2u32.to_ne_bytes());
            }
            Self::LoadSource(family, to) => {
                payload(list, 1, family.source(), family.width(), to);
            }
            Self::LoadDestination(family, to) => {
                payload(list, 1, family.destination(), family.width(), to);
            }
            Self::LoadProtocol(to) => meta(list, 16, to),
            Self::LoadPort(to) => payload(list, 2, 2, 2, to),
            Self::In(set) => element(list, "lookup", |data| {
                data.text(1, set).network_number(2, register(0));
            }),
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

fn interface(list: &mut Messages, key: u32, name: &str) {
    meta(list, key, 0);
    match name.strip_suffix('*') {
        Some(beginning) => compare(list, true, beginning.as_bytes()),
        None => {
            let mut bytes = [0; 16];
            let length = name.len().min(15);
            bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
            compare(list, true, &bytes);
        }
    }
}

fn range(list: &mut Messages, offset: u32, address: IpAddr, prefix: u8, inside: bool) {
    let width = Family::of(address).width();
    payload(list, 1, offset, width, 0);
    let mut wanted = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let mut mask = Vec::with_capacity(16);
    let mut left = prefix;
    for byte in &mut wanted {
        let bits = left.min(8);
        left -= bits;
        let part = 0xffu8.checked_shl(u32::from(8 - bits)).unwrap_or(0);
        mask.push(part);
        *byte &= part;
    }
    if mask.iter().any(|&part| part != 0xff) {
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
    compare(list, inside, &wanted);
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
