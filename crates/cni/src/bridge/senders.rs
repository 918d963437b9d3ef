//! The nftables table of the family bridge: pods can send only with their own addresses.
//!
//! Each frame of a pod needs one lookup by input interface, MAC address and IP address. Pods are
//! elements of two sets. Everything else is dropped: frames of interfaces without elements, of
//! protocols other than IPv4, IPv6 and ARP, and of VLANs.
//!
//! Packets of pods outside of the bridge do not pass this table; the table for address translation
//! has rules for them.

use std::net::{IpAddr, Ipv6Addr};

use rubelet_host::nft::{
    Batch, Bytes, ChainKind, Element, Expression as E, Family, Hook, Set, SetKind, TableFamily,
};

use crate::attachment::Lease;

use super::names::{Names, inside_mac, link_local};

/// Elements of one set.
pub(super) type Elements = (&'static str, Vec<Element>);

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;

// Types of ICMPv6 messages.
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
pub(super) const REDIRECT: u8 = 137;

/// Link-local multicast, which bridges do not forward (IEEE 802.1D).
const RESERVED: ([u8; 6], u8) = ([0x01, 0x80, 0xc2, 0, 0, 0], 44);

/// The sets, by family.
pub(super) const SETS: [&str; 2] = ["senders4", "senders6"];

/// The addresses that a pod may send with.
pub(super) fn elements(lease: &Lease) -> Vec<Elements> {
    let mac = inside_mac(lease.addresses[0]);
    let element = |address: IpAddr| {
        let key = Bytes::default().interface(&lease.host_interface).mac(mac);
        (key.address(address).done(), Vec::new())
    };
    let of_family = |ipv4: bool| -> Vec<_> {
        let mut own: Vec<IpAddr> = lease.addresses.clone();
        own.retain(|address| address.is_ipv4() == ipv4);
        if !own.is_empty() && !ipv4 {
            own.push(link_local(mac));
        }
        own.into_iter().map(element).collect()
    };
    let mut found = vec![(SETS[0], of_family(true)), (SETS[1], of_family(false))];
    found.retain(|(_, list)| !list.is_empty());
    found
}

/// Replaces the whole table.
pub(super) fn build<'t>(names: &'t Names, leases: &[Lease]) -> Batch<'t> {
    let mut batch = Batch::new(TableFamily::Bridge, &names.bridge);
    batch.add_table().delete_table().add_table();
    for (name, family) in SETS.into_iter().zip([Family::V4, Family::V6]) {
        let kind = SetKind::Senders(family);
        batch.add_set(Set { name, kind });
    }
    let pods = format!("{}*", names.prefix);
    batch
        .add_chain("from-pods", ChainKind::Plain)
        .add_chain("prerouting", ChainKind::Filter(Hook::Prerouting, -300))
        .add_chain("input", ChainKind::Filter(Hook::Input, -300))
        .add_rule("prerouting", &[E::From(&pods), E::Jump("from-pods")])
        .add_rule(
            "input",
            &[
                E::From(&pods),
                E::EtherDestination(RESERVED.0, RESERVED.1),
                E::Drop,
            ],
        );
    check(&mut batch);
    for lease in leases {
        for (set, list) in elements(lease) {
            batch.add_elements(set, &list);
        }
    }
    batch
}

/// The chain for frames of pods.
fn check(batch: &mut Batch<'_>) {
    let [ipv4, ipv6] = SETS;
    // Key: interface, MAC address, IP address.
    let by = |address: E<'static>| [E::LoadInterface(0), E::LoadEtherSource(4), address];
    let mut rule = |parts: &[&[E<'static>]]| {
        batch.add_rule("from-pods", &parts.concat());
    };
    rule(&[
        &[E::EtherType(IPV4)],
        &by(E::LoadSource(Family::V4, 6)),
        &[E::In(ipv4), E::Accept],
    ]);
    // In ARP, the MAC addresses of the frame and of the payload must both be the pod's.
    rule(&[
        &[E::EtherType(ARP), E::IsEthernetArp],
        &by(E::LoadArpAddress(6)),
        &[E::In(ipv4), E::LoadArpMac(4), E::In(ipv4), E::Accept],
    ]);
    // Pods must not act as routers.
    for kind in [ROUTER_ADVERTISEMENT, REDIRECT] {
        rule(&[&[E::EtherType(IPV6), E::IcmpType(Family::V6, kind), E::Drop]]);
    }
    rule(&[
        &[
            E::EtherType(IPV6),
            E::IcmpType(Family::V6, NEIGHBOUR_ADVERTISEMENT),
        ],
        &by(E::LoadNeighbourTarget(6)),
        &[E::NotIn(ipv6), E::Drop],
    ]);
    // Duplicate address detection is sent from the unspecified address.
    let nobody = IpAddr::from(Ipv6Addr::UNSPECIFIED);
    rule(&[
        &[
            E::EtherType(IPV6),
            E::IcmpType(Family::V6, NEIGHBOUR_SOLICITATION),
        ],
        &[E::Source(nobody, 128, true)],
        &by(E::LoadNeighbourTarget(6)),
        &[E::In(ipv6), E::Accept],
    ]);
    rule(&[
        &[E::EtherType(IPV6)],
        &by(E::LoadSource(Family::V6, 6)),
        &[E::In(ipv6), E::Accept],
    ]);
    rule(&[&[E::Drop]]);
}
