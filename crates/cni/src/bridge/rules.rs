//! The nftables table: address translation, and nothing else.
//!
//! Packets between pods, the host and the outside all pass the host's routing, also those between two
//! pods, so that what is translated on the way there is translated back on the way back, without
//! `br_netfilter`. The chains stay as they are while pods come and go; pods are elements of maps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rubelet_host::nft::{Batch, Bytes, ChainKind, Expression as E, Family, Hook, Set, SetKind};

use crate::{Cidr, attachment::Lease};

use super::{host_ports::named, names::Names, sysctl};

/// Elements of one set.
pub(super) type Elements = (&'static str, Vec<(Vec<u8>, Vec<u8>)>);

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

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
    exempt: &[Cidr],
    leases: impl Iterator<Item = Lease>,
) -> Batch<'t> {
    let mut batch = Batch::new(&names.bridge);
    batch.add_table().delete_table().add_table();
    // A kernel without IPv6 can't translate its addresses, and would refuse the whole table.
    let families = if sysctl::has_ipv6() {
        &FAMILIES[..]
    } else {
        &FAMILIES[..1]
    };
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
        leave(&mut batch, *range, ranges, exempt);
    }
    for lease in leases {
        for (set, list) in elements(&lease) {
            batch.add_elements(set, &list);
        }
    }
    batch
}

/// `route_localnet` lets answers reach 127.0.0.1, and would let pods reach what listens there.
fn guard(batch: &mut Batch<'_>, names: &Names) {
    let loopback = IpAddr::from(Ipv4Addr::new(127, 0, 0, 0));
    let pods = format!("{}*", names.prefix);
    for interface in [names.bridge.as_str(), pods.as_str()] {
        batch.add_rule(
            "guard",
            &[
                E::From(interface),
                E::Is(Family::V4),
                E::Destination(loopback, 8, true),
                E::Drop,
            ],
        );
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
