//! IP address ranges in CIDR notation.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// A range of addresses in CIDR notation. Host bits are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    network: IpAddr,
    prefix: u8,
}

/// An invalid address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address range such as 10.1.0.0/16 or fd00:1::/64")]
pub struct CidrError {
    text: String,
}

impl Cidr {
    /// The range with this prefix that contains `address`; `None` if the prefix is too long.
    #[must_use]
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let bits = width(address);
        (prefix <= bits).then(|| Self {
            network: from_number(address, to_number(address) & mask(bits, prefix)),
            prefix,
        })
    }

    /// The network address.
    #[must_use]
    pub fn network(&self) -> IpAddr {
        self.network
    }

    /// The prefix length.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether this is an IPv4 range.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.network.is_ipv4()
    }

    /// Whether the address is in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4()
            && to_number(address) & mask(width(address), self.prefix) == to_number(self.network)
    }

    /// Whether the ranges share an address.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }

    /// Number of pod addresses, at most 2^24: all but the network address, the gateway and the IPv4
    /// broadcast address.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        let bits = width(self.network) - self.prefix;
        let all = 1u32 << bits.min(24);
        all.saturating_sub(if self.is_ipv4() && bits <= 24 { 3 } else { 2 })
    }

    /// The address of the bridge: the first host address.
    #[must_use]
    pub fn gateway(&self) -> IpAddr {
        from_number(self.network, to_number(self.network) + 1)
    }

    /// The pod address with this number, from 0 to [`Self::capacity`].
    #[must_use]
    pub fn pod(&self, number: u32) -> IpAddr {
        from_number(
            self.network,
            to_number(self.network) + 2 + u128::from(number),
        )
    }

    /// The number of a pod address.
    #[must_use]
    pub fn number(&self, address: IpAddr) -> Option<u32> {
        if !self.contains(address) {
            return None;
        }
        let offset = to_number(address) - to_number(self.network);
        let number = u32::try_from(offset.checked_sub(2)?).ok()?;
        (number < self.capacity()).then_some(number)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn mask(bits: u8, prefix: u8) -> u128 {
    let all = if bits == 32 {
        u128::from(u32::MAX)
    } else {
        u128::MAX
    };
    match bits - prefix {
        128 => 0,
        low => all >> low << low,
    }
}

fn to_number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn from_number(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
        IpAddr::V6(_) => Ipv6Addr::from(number).into(),
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let parse = || {
            let (address, prefix) = text.trim().split_once('/')?;
            Self::new(address.parse().ok()?, prefix.parse().ok()?)
        };
        parse().ok_or_else(|| CidrError {
            text: text.to_owned(),
        })
    }
}

impl TryFrom<String> for Cidr {
    type Error = CidrError;

    fn try_from(text: String) -> Result<Self, CidrError> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(cidr: Cidr) -> Self {
        cidr.to_string()
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests;
