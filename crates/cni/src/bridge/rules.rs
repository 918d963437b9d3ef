//! The nftables table of addresses: their translation, and what must not come in by which of them.
//!
//! Packets between pods, the host and the outside all pass the host's routing, also those between two
//! pods, so that what is translated on the way there is translated back on the way back, without
//! `br_netfilter`. The chains stay as they are while pods come and go; pods are elements of maps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rubelet_host::nft::{
    Batch, Bytes, ChainKind, Element, Expression as E, Family, Hook, Set, SetKind, TableFamily,
};

use crate::{Cidr, NetworkSettings, attachment::Lease};

use super::{host_ports::named, names::Names, sysctl};

/// Elements of one set.
pub(super) type Elements = (&'static str, Vec<Element>);

/// A kernel without IPv6 can't translate its addresses, and would refuse the whole table.
fn families() -> &'static [Family] {
    const FAMILIES: &[Family] = &[Family::V4, Family::V6];
    if sysctl::has_ipv6() {
        FAMILIES
    } else {
        &FAMILIES[..1]
    }
}

/// The names of all sets.
pub(super) fn all_sets() -> Vec<&'static str> {
    let each = families().iter().map(|&family| sets(family));
    each.flat_map(|sets| [sets.ports, sets.ports_of, sets.selves])
        .collect()
}

/// Names of the sets of a family.
struct Sets {
    /// Ports of all addresses of the host.
    ports: &'static str,
    /// Ports of one address of the host.
    ports_of: &'static str,
    /// Pods that may reach themselves by a port of the host.
    selves: &'static str,
}

fn sets(family: Family) -> Sets {
    match family {
        Family::V4 => Sets {
            ports: "ports4",
            ports_of: "ports4-of-address",
            selves: "selves4",
        },
        Family::V6 => Sets {
            ports: "ports6",
            ports_of: "ports6-of-address",
            selves: "selves6",
        },
    }
}

/// The elements that lead to a pod.
pub(super) fn elements(lease: &Lease) -> Vec<Elements> {
    let mut found: Vec<Elements> = Vec::new();
    for &pod in &lease.addresses {
        let names = sets(Family::of(pod));
        let (mut ports, mut ports_of) = (Vec::new(), Vec::new());
        for port in &lease.ports {
            let value = Bytes::default()
                .address(pod)
                .port(port.container_port)
                .done();
            let protocol = port.protocol.number();
            match named(port.host_ip) {
                None => {
                    // 0.0.0.0 is all addresses of IPv4, as for a listening socket.
                    if port.host_ip.is_none_or(|ip| ip.is_ipv4() == pod.is_ipv4()) {
                        let key = Bytes::default().protocol(protocol).port(port.host_port);
                        ports.push((key.done(), value));
                    }
                }
                Some(host) if host.is_ipv4() == pod.is_ipv4() => {
                    let key = Bytes::default().address(host).protocol(protocol);
                    ports_of.push((key.port(port.host_port).done(), value));
                }
                Some(_) => {}
            }
        }
        if ports.is_empty() && ports_of.is_empty() {
            continue;
        }
        for list in [&mut ports, &mut ports_of] {
            list.sort();
            list.dedup();
        }
        let myself = Bytes::default().address(pod).address(pod).done();
        found.push((names.ports, ports));
        found.push((names.ports_of, ports_of));
        found.push((names.selves, vec![(myself, Vec::new())]));
    }
    found.retain(|(_, list)| !list.is_empty());
    found
}

/// Replaces the whole table.
pub(super) fn build<'t>(
    names: &'t Names,
    ranges: &[Cidr],
    settings: &NetworkSettings,
    leases: &[Lease],
) -> Batch<'t> {
    let mut batch = Batch::new(TableFamily::Inet, &names.bridge);
    batch.add_table().delete_table().add_table();
    let families = families();
    for &family in families {
        let Sets {
            ports,
            ports_of,
            selves,
        } = sets(family);
        for (name, kind) in [
            (ports, SetKind::Ports(family)),
            (ports_of, SetKind::AddressPorts(family)),
            (selves, SetKind::Pairs(family)),
        ] {
            batch.add_set(Set { name, kind });
        }
    }
    // Priorities as those `nft` calls raw, dstnat and srcnat.
    batch
        .add_chain("guard", ChainKind::Filter(Hook::Prerouting, -300))
        .add_chain("host-ports", ChainKind::Plain)
        .add_chain("prerouting", ChainKind::Nat(Hook::Prerouting, -100))
        .add_chain("output", ChainKind::Nat(Hook::Output, -100))
        .add_chain("postrouting", ChainKind::Nat(Hook::Postrouting, 100));
    guard(&mut batch, names);
    if settings.isolate_pods {
        isolate(&mut batch, names, families);
    }
    let jump = [E::DestinationIsLocal, E::Jump("host-ports")];
    batch
        .add_rule("prerouting", &jump)
        .add_rule("output", &jump);
    // The kernel can't send a packet from ::1 to elsewhere; the host itself answers there.
    let loopback = IpAddr::from(Ipv6Addr::LOCALHOST);
    if families.contains(&Family::V6) {
        batch.add_rule(
            "host-ports",
            &[
                E::Is(Family::V6),
                E::Destination(loopback, 128, true),
                E::Return,
            ],
        );
    }
    for &family in families {
        let Sets {
            ports,
            ports_of,
            selves,
        } = sets(family);
        let width = family.width() / 4;
        batch
            .add_rule(
                "host-ports",
                &[
                    E::Is(family),
                    E::LoadDestination(family, 0),
                    E::LoadProtocol(width),
                    E::LoadPort(width + 1),
                    E::Map(ports_of),
                    E::Redirect(family),
                ],
            )
            .add_rule(
                "host-ports",
                &[
                    E::Is(family),
                    E::LoadProtocol(0),
                    E::LoadPort(1),
                    E::Map(ports),
                    E::Redirect(family),
                ],
            )
            .add_rule(
                "postrouting",
                &[
                    E::Is(family),
                    E::LoadSource(family, 0),
                    E::LoadDestination(family, width),
                    E::In(selves),
                    E::Masquerade(false),
                ],
            );
    }
    for range in ranges {
        leave(&mut batch, *range, ranges, &settings.masquerade_exempt);
    }
    for lease in leases {
        for (set, list) in elements(lease) {
            batch.add_elements(set, &list);
        }
    }
    batch
}

/// What must not come in: from anywhere but the host itself, packets to or from its loopback; from pods
/// that have a route of their own, packets that it does not lead back to.
///
/// Ports of 127.0.0.1 that lead to pods are translated before the kernel looks whether such an address
/// may come by a wire at all, and `route_localnet` makes it not look. Of IPv6, the kernel drops what
/// comes to or from `::1` before any table sees it.
fn guard(batch: &mut Batch<'_>, names: &Names) {
    let loopback = IpAddr::from(Ipv4Addr::new(127, 0, 0, 0));
    for address in [
        E::Destination(loopback, 8, true),
        E::Source(loopback, 8, true),
    ] {
        let rule = [E::NotFrom("lo"), E::Is(Family::V4), address, E::Drop];
        batch.add_rule("guard", &rule);
    }
    let pods = format!("{}*", names.prefix);
    batch.add_rule("guard", &[E::From(&pods), E::NotFromItsRoute, E::Drop]);
}

/// Keeps pods from each other; a pod still reaches itself by a port of the host. Ports of the bridge
/// are isolated as well: a pod may send to a neighbour without asking the host's routing.
fn isolate(batch: &mut Batch<'_>, names: &Names, families: &[Family]) {
    batch.add_chain("isolation", ChainKind::Filter(Hook::Forward, 0));
    let pods = format!("{}*", names.prefix);
    let ends = [names.bridge.as_str(), pods.as_str()];
    for &family in families {
        for (from, to) in ends.iter().flat_map(|from| ends.map(|to| (from, to))) {
            batch.add_rule(
                "isolation",
                &[
                    E::From(from),
                    E::To(to),
                    E::Is(family),
                    E::LoadSource(family, 0),
                    E::LoadDestination(family, family.width() / 4),
                    E::NotIn(sets(family).selves),
                    E::Drop,
                ],
            );
        }
    }
}

/// Packets from a range to elsewhere carry the host's address, and so do those of the host's
/// loopback that were sent on to a pod.
fn leave(batch: &mut Batch<'_>, range: Cidr, ranges: &[Cidr], exempt: &[Cidr]) {
    let (family, multicast) = if range.is_ipv4() {
        (Family::V4, (IpAddr::from(Ipv4Addr::new(224, 0, 0, 0)), 4))
    } else {
        let all = Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0);
        (Family::V6, (IpAddr::from(all), 8))
    };
    if range.is_ipv4() {
        let loopback = IpAddr::from(Ipv4Addr::new(127, 0, 0, 0));
        batch.add_rule(
            "postrouting",
            &[
                E::Is(family),
                E::Source(loopback, 8, true),
                E::Destination(range.network(), range.prefix(), true),
                E::Masquerade(false),
            ],
        );
    }
    let mut rule = vec![
        E::Is(family),
        E::Source(range.network(), range.prefix(), true),
        E::Destination(multicast.0, multicast.1, false),
    ];
    rule.extend(
        ranges
            .iter()
            .chain(exempt)
            .filter(|other| other.is_ipv4() == range.is_ipv4())
            .map(|other| E::Destination(other.network(), other.prefix(), false)),
    );
    // Ports chosen by chance keep two connections from wanting the same one at once.
    rule.push(E::Masquerade(true));
    batch.add_rule("postrouting", &rule);
}
