//! Sets and maps, whose keys and values are concatenations of addresses, protocols and ports.

use std::net::IpAddr;

use crate::netlink::message::Messages;

use super::Family;

/// A component of a key or value.
#[derive(Debug, Clone, Copy)]
enum Part {
    Interface,
    Mac,
    Address(Family),
    Protocol,
    Port,
}

impl Part {
    /// The type ID by which `nft` displays it.
    fn number(self) -> u32 {
        match self {
            Self::Interface => 41,
            Self::Mac => 9,
            Self::Address(Family::V4) => 7,
            Self::Address(Family::V6) => 8,
            Self::Protocol => 12,
            Self::Port => 13,
        }
    }

    /// Each component is aligned to four bytes.
    fn width(self) -> u32 {
        match self {
            Self::Interface => 16,
            Self::Mac => 8,
            Self::Address(family) => family.width(),
            Self::Protocol | Self::Port => 4,
        }
    }
}

/// The types of keys and values of a set or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    /// Protocol and port to address and port.
    Ports(Family),
    /// Address, protocol and port to address and port.
    AddressPorts(Family),
    /// Pairs of addresses.
    Pairs(Family),
    /// Interface, hardware address and address.
    Senders(Family),
}

impl SetKind {
    fn key(self) -> Vec<Part> {
        match self {
            Self::Ports(_) => vec![Part::Protocol, Part::Port],
            Self::AddressPorts(family) => vec![Part::Address(family), Part::Protocol, Part::Port],
            Self::Pairs(family) => vec![Part::Address(family), Part::Address(family)],
            Self::Senders(family) => vec![Part::Interface, Part::Mac, Part::Address(family)],
        }
    }

    fn value(self) -> Option<Vec<Part>> {
        match self {
            Self::Ports(family) | Self::AddressPorts(family) => {
                Some(vec![Part::Address(family), Part::Port])
            }
            Self::Pairs(_) | Self::Senders(_) => None,
        }
    }
}

/// The bytes of a key, and of a value if the set is a map.
pub type Element = (Vec<u8>, Vec<u8>);

/// A set or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set<'a> {
    /// Its name.
    pub name: &'a str,
    /// The types of its keys and values.
    pub kind: SetKind,
}

impl Set<'_> {
    pub(super) fn write(&self, messages: &mut Messages, number: u32) {
        let (key_kind, key_width) = joined(&self.kind.key());
        messages.text(2, self.name);
        if let Some(value) = self.kind.value() {
            let (kind, width) = joined(&value);
            messages
                .network_number(3, 8)
                .network_number(6, kind)
                .network_number(7, width);
        }
        messages
            .network_number(4, key_kind)
            .network_number(5, key_width)
            .network_number(10, number);
    }
}

fn joined(parts: &[Part]) -> (u32, u32) {
    let kind = parts.iter().fold(0, |kind, part| kind << 6 | part.number());
    (kind, parts.iter().map(|part| part.width()).sum())
}

pub(super) fn write_element(list: &mut Messages, key: &[u8], value: &[u8]) {
    list.nest(1, |element| {
        element.nest(1, |nest| {
            nest.attribute(1, key);
        });
        if !value.is_empty() {
            element.nest(2, |nest| {
                nest.attribute(1, value);
            });
        }
    });
}

/// Bytes of keys and values.
#[derive(Debug, Default)]
pub struct Bytes(Vec<u8>);

impl Bytes {
    /// Appends the name of an interface, truncated if it is too long.
    #[must_use]
    pub fn interface(mut self, name: &str) -> Self {
        let end = self.0.len() + 16;
        self.0.extend(name.bytes().take(15));
        self.0.resize(end, 0);
        self
    }

    /// Appends a MAC address.
    #[must_use]
    pub fn mac(mut self, mac: [u8; 6]) -> Self {
        self.0.extend(mac);
        self.0.extend([0, 0]);
        self
    }

    /// Appends an address.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => self.0.extend(address.octets()),
            IpAddr::V6(address) => self.0.extend(address.octets()),
        }
        self
    }

    /// Appends the number of a transport protocol.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> Self {
        self.0.extend([protocol, 0, 0, 0]);
        self
    }

    /// Appends a port.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.0.extend(port.to_be_bytes());
        self.0.extend([0, 0]);
        self
    }

    /// The bytes.
    #[must_use]
    pub fn done(self) -> Vec<u8> {
        self.0
    }
}
