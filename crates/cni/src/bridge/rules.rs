//! The nftables table of the family inet: address translation, and the guard of the host's
//! loopback.
//!
//! All packets are routed by the host, also those between two pods, so that replies are translated
//! back without `br_netfilter`. Chains do not change when pods are added or removed; pods are
//! elements of sets and maps.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rubelet_host::nft::{
    Batch, Bytes, ChainKind, Expression as E, Family, Hook, Set, SetKind, TableFamily,
};

use crate::{Cidr, NetworkSettings, attachment::Lease};

use super::{
    host_ports::named,
    names::Names,
    senders::{self, Elements},
    sysctl,
};

/// The type of ICMP redirects.
const REDIRECT: u8 = 5;

/// A kernel without IPv6 would reject the whole table.
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
    /// Host ports on all addresses.
    ports: &'static str,
    /// Host ports on one address.
    ports_of: &'static str,
    /// Pods that may reach themselves by a host port (hairpin).
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

/// The elements of a pod.
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
                    // 0.0.0.0 means all IPv4 addresses, as for a listening socket.
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
    // The priorities that `nft` calls raw, dstnat and srcnat.
    batch
        .add_chain("guard", ChainKind::Filter(Hook::Prerouting, -300))
        .add_chain("host-ports", ChainKind::Plain)
        .add_chain("prerouting", ChainKind::Nat(Hook::Prerouting, -100))
        .add_chain("output", ChainKind::Nat(Hook::Output, -100))
        .add_chain("postrouting", ChainKind::Nat(Hook::Postrouting, 100));
    guard(&mut batch, names);
    redirects(&mut batch, names, families);
    let jump = [E::DestinationIsLocal, E::Jump("host-ports")];
    batch
        .add_rule("prerouting", &jump)
        .add_rule("output", &jump);
    // The kernel can't route packets from ::1 to other hosts; [::1] stays with the host itself.
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
        translate(&mut batch, family);
    }
    if settings.isolate_pods {
        isolate(&mut batch, names, families);
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

/// Adds the sets of a family, and the rules that use them.
fn translate(batch: &mut Batch<'_>, family: Family) {
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

/// Drops ICMP redirects that the host would send to pods: each other's addresses are on their link,
/// but all packets go by the host. Pods ignore it, and their programs take it for an error.
///
/// `send_redirects` of the bridge is not enough: Linux sends them while that of `all` is on, and those
/// of IPv6 have no such setting.
fn redirects(batch: &mut Batch<'_>, names: &Names, families: &[Family]) {
    batch.add_chain("redirects", ChainKind::Filter(Hook::Output, 0));
    for &family in families {
        let kind = match family {
            Family::V4 => REDIRECT,
            Family::V6 => senders::REDIRECT,
        };
        let rule = [
            E::Is(family),
            E::To(&names.bridge),
            E::IcmpType(family, kind),
            E::Drop,
        ];
        batch.add_rule("redirects", &rule);
    }
}

/// Drops packets to or from 127.0.0.0/8 that the host did not send itself; from pods outside of the
/// bridge, also packets with a source address that does not route back.
///
/// Needed because `route_localnet` disables the kernel's own check for loopback addresses on
/// interfaces. For IPv6 there is no such setting: the kernel drops packets to or from `::1` before
/// nftables.
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

/// Drops packets between pods; a pod still reaches itself by a host port. Bridge ports are isolated
/// as well, because frames between two ports do not pass the host's routing.
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

/// Masquerades packets from a range to other destinations, and those from the host's loopback to a
/// pod.
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
    // Random source ports avoid a conntrack race in which two connections get the same port and a
    // packet is lost.
    rule.push(E::Masquerade(true));
    batch.add_rule("postrouting", &rule);
}
