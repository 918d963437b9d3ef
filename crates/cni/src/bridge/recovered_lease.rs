//! Recovers a pod's lease from the host after its record was lost.

use std::net::IpAddr;

use rubelet_host::netlink::{Link, Neighbour};

use crate::{Cidr, attachment::Lease};

use super::names::{inside_mac, outside_mac};

/// The lease of the pod behind this interface. MAC addresses derive from the first IP address, and
/// the bridge has static neighbour entries. `None` if they do not match. Host ports can't be
/// recovered.
pub(super) fn lease(
    link: &Link,
    bridge: u32,
    neighbours: &[Neighbour],
    ranges: &[Cidr],
) -> Option<Lease> {
    let own = |neighbour: &&Neighbour| neighbour.link == bridge || neighbour.link == link.index;
    let is_first = |neighbour: &&Neighbour| {
        link.mac == outside_mac(neighbour.address)
            && neighbour.mac == Some(inside_mac(neighbour.address))
    };
    let first = neighbours.iter().filter(own).find(is_first)?;
    let mut addresses = vec![first.address];
    for neighbour in neighbours.iter().filter(own) {
        let known = addresses.contains(&neighbour.address);
        if neighbour.mac == first.mac && !known {
            addresses.push(neighbour.address);
        }
    }
    let range = |address: &IpAddr| {
        ranges
            .iter()
            .find(|range| range.contains(*address))
            .copied()
    };
    addresses.retain(|address| range(address).is_some());
    let ranges: Vec<Cidr> = addresses.iter().filter_map(range).collect();
    (addresses.first() == Some(&first.address)).then(|| Lease {
        addresses,
        ranges,
        host_interface: link.name.clone(),
        ports: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn neighbour(link: u32, address: &str, of: &str) -> Neighbour {
        Neighbour {
            link,
            address: ip(address),
            mac: Some(inside_mac(ip(of))),
        }
    }

    #[test]
    fn all_addresses_of_the_pod_behind_an_interface_are_found() {
        let link = Link {
            index: 7,
            name: "rubxveth".to_owned(),
            kind: "veth".to_owned(),
            peer: None,
            master: Some(3),
            port: None,
            mac: outside_mac(ip("10.99.0.2")).to_vec(),
            mtu: 1500,
            up: true,
            running: true,
            group: 0,
            counters: rubelet_host::netlink::Counters::default(),
        };
        let ranges: Vec<Cidr> = ["10.99.0.0/16", "fd99::/64"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
        let neighbours = [
            neighbour(3, "fd99::2", "10.99.0.2"),
            neighbour(3, "10.99.0.3", "10.99.0.3"),
            neighbour(3, "10.99.0.2", "10.99.0.2"),
            neighbour(4, "10.99.0.4", "10.99.0.2"),
            neighbour(3, "192.0.2.1", "10.99.0.2"),
        ];
        let found = lease(&link, 3, &neighbours, &ranges).unwrap();
        assert_eq!(found.addresses, [ip("10.99.0.2"), ip("fd99::2")]);
        assert_eq!(found.ranges, ranges);
        assert_eq!(found.host_interface, "rubxveth");
        assert_eq!(lease(&link, 3, &neighbours[..2], &ranges), None);
        assert_eq!(lease(&link, 3, &neighbours, &ranges[1..]), None);
    }
}
