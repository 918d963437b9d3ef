//! The address ranges of pods.

use std::net::IpAddr;

use rubelet_host::netlink::{Link, Route};

use crate::{Cidr, NetworkRefusal};

/// Default ranges: private ones that other programs don't use by default (podman uses 10.88 and
/// 10.89, CRI-O 10.85, k3s 10.42, flannel and kind 10.244, docker 172.17 and the following; 192.168
/// is common in home networks).
const CANDIDATES: [(u8, u8); 6] = [
    (10, 209),
    (10, 217),
    (10, 173),
    (10, 141),
    (10, 233),
    (172, 30),
];

/// The smallest usable range.
const MIN_CAPACITY: u32 = 1;

/// Checks that the ranges are usable.
pub(super) fn check(ranges: &[Cidr]) -> Result<(), NetworkRefusal> {
    for (number, range) in ranges.iter().enumerate() {
        if range.capacity() < MIN_CAPACITY {
            return Err(NetworkRefusal::RangeTooSmall(*range));
        }
        if range.network().is_loopback() || range.network().is_multicast() {
            return Err(NetworkRefusal::RangeNotUsable(*range));
        }
        let twin = ranges[..number]
            .iter()
            .find(|other| other.is_ipv4() == range.is_ipv4());
        if let Some(twin) = twin {
            return Err(NetworkRefusal::SameFamily {
                one: *twin,
                other: *range,
            });
        }
    }
    Ok(())
}

/// The refusal of a range that conflicts with a route of the host. Routes by `own`, the bridge, do
/// not conflict, and neither does a wider one by a gateway, such as the route by which the
/// cluster's range is announced.
pub(super) fn clash(
    range: Cidr,
    routes: &[Route],
    links: &[Link],
    own: Option<u32>,
) -> Option<NetworkRefusal> {
    let route = routes.iter().find(|route| {
        let Some(other) = Cidr::new(route.destination, route.prefix) else {
            return false;
        };
        let inside = other.prefix() >= range.prefix();
        route.prefix > 0
            && Some(route.link) != own
            && other.overlaps(&range)
            && (inside || route.gateway.is_none())
            && !is_pod(route, links)
    })?;
    let interface = links
        .iter()
        .find(|link| link.index == route.link)
        .map_or("?", |link| link.name.as_str());
    Some(NetworkRefusal::RangeOverlaps {
        range,
        destination: route.destination,
        prefix: route.prefix,
        interface: interface.to_owned(),
    })
}

/// A host route by a veth leads to a pod, of this network or of an earlier one.
fn is_pod(route: &Route, links: &[Link]) -> bool {
    let single = match route.destination {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    };
    route.prefix == single
        && links
            .iter()
            .any(|link| link.index == route.link && link.kind == "veth")
}

/// A default range that overlaps with no route of the host.
pub(super) fn choose(routes: &[Route]) -> Result<Cidr, NetworkRefusal> {
    CANDIDATES
        .iter()
        .filter_map(|&(a, b)| Cidr::new(IpAddr::from([a, b, 0, 0]), 16))
        .find(|range| {
            !routes.iter().any(|route| {
                route.prefix > 0
                    && Cidr::new(route.destination, route.prefix)
                        .is_some_and(|other| other.overlaps(range))
            })
        })
        .ok_or(NetworkRefusal::NoFreeRange)
}

#[cfg(test)]
mod tests;
