//! Addresses of interfaces.

use std::{collections::BTreeSet, net::IpAddr};

use super::{
    Changes, NetlinkError, RouteSocket, message,
    socket::{DO, ENSURE},
};

// `linux/if_addr.h`
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
/// Usable immediately, without duplicate address detection.
const IFA_F_NODAD: u8 = 2;

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The interface's index.
    pub link: u32,
    /// The address.
    pub address: IpAddr,
    /// Prefix length.
    pub prefix: u8,
}

impl RouteSocket {
    /// All addresses of both families.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn addresses(&mut self) -> Result<Vec<Address>, NetlinkError> {
        let mut known = BTreeSet::new();
        let mut addresses = Vec::new();
        self.socket
            .dump(libc::RTM_GETADDR, &[0; 8], "list the addresses", |item| {
                let address = parse(item);
                addresses.extend(address.filter(|address| known.insert(*address)));
            })?;
        Ok(addresses)
    }

    /// The first addresses, at most `most`: a pod can add any number of them.
    ///
    /// # Errors
    /// The kernel returns an error.
    pub fn first_addresses(self, most: usize) -> Result<Vec<Address>, NetlinkError> {
        let what = "list the addresses";
        let items = self
            .socket
            .dump_beginning(libc::RTM_GETADDR, &[0; 8], most, what)?;
        Ok(items.iter().filter_map(|item| parse(item)).collect())
    }
}

impl Changes {
    /// Adds an address to an interface, unless it has it. It is usable immediately.
    pub fn add_address(&mut self, address: Address) -> &mut Self {
        self.address(libc::RTM_NEWADDR, ENSURE, address)
    }

    /// Removes an address from an interface.
    pub fn delete_address(&mut self, address: Address) -> &mut Self {
        self.address(libc::RTM_DELADDR, DO, address)
    }

    fn address(&mut self, kind: u16, flags: u16, address: Address) -> &mut Self {
        let Address {
            link,
            address,
            prefix,
        } = address;
        let (family, bytes) = bytes(address);
        let mut header = [family, prefix, IFA_F_NODAD, 0, 0, 0, 0, 0];
        header[4..].copy_from_slice(&link.to_ne_bytes());
        let messages = self
            .messages
            .begin(kind, flags, &header)
            .attribute(IFA_LOCAL, &bytes)
            .attribute(IFA_ADDRESS, &bytes);
        if let (IpAddr::V4(address), ..=30) = (address, prefix) {
            let broadcast = u32::from(address) | (u32::MAX >> prefix);
            messages.attribute(IFA_BROADCAST, &broadcast.to_be_bytes());
        }
        self
    }
}

fn parse(item: &[u8]) -> Option<Address> {
    let rest = item.get(8..)?;
    let value =
        message::attribute(rest, IFA_LOCAL).or_else(|| message::attribute(rest, IFA_ADDRESS))?;
    Some(Address {
        link: message::number(item, 4)?,
        address: from_bytes(value)?,
        prefix: *item.get(1)?,
    })
}

/// The family's number and the address in network byte order.
pub(super) fn bytes(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (2, address.octets().to_vec()),
        IpAddr::V6(address) => (10, address.octets().to_vec()),
    }
}

pub(super) fn from_bytes(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(bytes.into());
    }
    Some(<[u8; 16]>::try_from(bytes).ok()?.into())
}
