//! Which ranges the pods' addresses come from.

use std::net::IpAddr;

use rubelet_host::netlink::{Link, Route};

use crate::Cidr;

/// Ranges to choose from when none is given: private ones that other programs don't use by default
/// (podman takes 10.88 and 10.89, CRI-O 10.85, k3s 10.42, flannel and kind 10.244, docker 172.17
/// and those behind it, 192.168 is at home everywhere).
const CANDIDATES: [(u8, u8); 6] = [
    (10, 209),
    (10, 217),
    (10, 173),
    (10, 141),
    (10, 233),
    (172, 30),
];

/// The fewest addresses that make sense.
const LEAST_ROOM: u32 = 1;

/// Whether the ranges can be used at all.
pub(super) fn check(ranges: &[Cidr]) -> Result<(), String> {
    for (number, range) in ranges.iter().enumerate() {
        if range.room() < LEAST_ROOM {
            return Err(format!(
                "the range {range} has no room for a pod: give a larger one"
            ));
        }
        if range.network().is_loopback() || range.network().is_multicast() {
            return Err(format!(
                "pods cannot have addresses of {range}: give a private range"
            ));
        }
        let twin = ranges[..number]
            .iter()
            .find(|other| other.is_ipv4() == range.is_ipv4());
        if let Some(twin) = twin {
            return Err(format!(
                "{twin} and {range} are of one family: give at most one range of each"
            ));
        }
    }
    Ok(())
}

/// A route of the host that makes a range unusable, in words. Routes by `own`, the bridge, are no
/// trouble, and neither is a wider one by a gateway: that is where the range is announced.
pub(super) fn clash(
    range: Cidr,
    routes: &[Route],
    links: &[Link],
    own: Option<u32>,
) -> Option<String> {
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
    Some(format!(
        "the pods' addresses {range} overlap with the route {}/{} of interface {interface}: choose another range for the pods",
        route.destination, route.prefix
    ))
}

/// A route to one address by a pair's end leads to a pod, of ours or of a network before ours.
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

/// A range that no route of the host overlaps with.
pub(super) fn choose(routes: &[Route]) -> Result<Cidr, String> {
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
        .ok_or_else(|| {
            "every range that could be chosen for pods overlaps with a route of this host: set the pods' range".to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, kind: &str) -> Link {
        Link {
            index,
            name: name.to_owned(),
            kind: kind.to_owned(),
            master: None,
            port: None,
            mac: Vec::new(),
            mtu: 1500,
            up: true,
            group: 0,
            counters: rubelet_host::netlink::Counters::default(),
        }
    }

    fn route(destination: &str, gateway: Option<&str>, link: u32) -> Route {
        let range: Cidr = destination.parse().unwrap();
        Route {
            destination: range.network(),
            prefix: range.prefix(),
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            link,
            source: None,
        }
    }

    #[test]
    fn routes_that_take_the_range_are_named() {
        let range: Cidr = "10.1.0.0/16".parse().unwrap();
        let links = [
            link(2, "eth0", ""),
            link(3, "rubelet0", "bridge"),
            link(4, "vx", "veth"),
        ];
        let clashes = |routes: &[Route]| clash(range, routes, &links, Some(3));
        let text = clashes(&[route("10.0.0.0/8", None, 2)]).unwrap();
        assert!(
            text.contains("10.0.0.0/8") && text.contains("eth0"),
            "{text}"
        );
        clashes(&[route("10.1.7.0/24", Some("10.9.0.1"), 2)]).unwrap();
        clashes(&[route("10.1.0.0/16", Some("10.9.0.1"), 2)]).unwrap();
        let harmless = [
            route("0.0.0.0/0", Some("192.0.2.1"), 2),
            route("10.0.0.0/8", Some("192.0.2.1"), 2),
            route("192.0.2.0/24", None, 2),
            route("10.1.0.0/16", None, 3),
            route("10.1.0.9/32", None, 4),
            route("fd00::/8", None, 2),
        ];
        assert_eq!(clashes(&harmless), None);
    }

    #[test]
    fn the_chosen_range_is_free_and_holds_a_thousand_pods() {
        let first = choose(&[]).unwrap();
        assert!(first.room() > 1000);
        let second = choose(&[route(&first.to_string(), Some("192.0.2.1"), 2)]).unwrap();
        assert_ne!(first, second);
        choose(&[
            route("10.0.0.0/8", None, 2),
            route("172.16.0.0/12", None, 2),
        ])
        .unwrap_err();
    }

    #[test]
    fn ranges_that_cannot_work_are_refused() {
        let ranges = |texts: &[&str]| -> Vec<Cidr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        check(&ranges(&["10.1.0.0/16", "fd00::/64"])).unwrap();
        for wrong in [
            &["10.1.0.0/31"][..],
            &["127.0.0.0/8"],
            &["224.0.0.0/8"],
            &["10.1.0.0/16", "10.2.0.0/16"],
            &["fd00::/128"],
        ] {
            check(&ranges(wrong)).unwrap_err();
        }
    }
}
