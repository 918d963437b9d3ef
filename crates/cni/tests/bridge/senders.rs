//! A pod sends with its own addresses, or not at all.

use std::{
    net::{Ipv6Addr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use rubelet_cni::PodNetwork;
use rubelet_host::{
    frames::Frames,
    netlink::{Address, Changes, RouteSocket},
    nft::{self, TableFamily},
};

use crate::{
    netfilter,
    packets::{
        EVERYBODY, Frame, arp, icmpv6, icmpv6_behind_options, inside, ipv6, link_local, mac,
        neighbour, on, passing, redirect, router_advertisement, udp4, v4, v6,
    },
    world::{BRIDGE, Pod, World, at, closed, ip, live, open, settle, tcp},
};

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;

const NOBODY: Ipv6Addr = Ipv6Addr::UNSPECIFIED;
const STRANGER: [u8; 6] = [0x0a, 0x58, 0x0a, 0x63, 0x00, 0x77];

/// A pod's own frames, of each kind.
fn own(pod: &Pod) -> Vec<Frame> {
    let (own, address, address6) = (mac(pod), v4(pod.result.ips[0]), v6(pod.result.ips[1]));
    let gateway = "10.99.0.1".parse().unwrap();
    let local = link_local(own);
    let frame = |what, kind, packet: Vec<u8>| Frame::new(what, EVERYBODY, own, kind, &packet);
    vec![
        frame("own IPv4", IPV4, udp4(address, gateway, 7001)),
        frame("own ARP", ARP, arp(1, own, address, gateway)),
        frame("own ARP answer", ARP, arp(2, own, address, gateway)),
        frame("own IPv6", IPV6, ipv6(address6, local, 59, &[0; 16])),
        frame("link-local IPv6", IPV6, ipv6(local, address6, 59, &[0; 16])),
        frame(
            "own solicitation",
            IPV6,
            icmpv6(local, &neighbour(135, "fd99::1".parse().unwrap(), own)),
        ),
        frame(
            "own advertisement",
            IPV6,
            icmpv6(address6, &neighbour(136, address6, own)),
        ),
        frame(
            "the search for own duplicates",
            IPV6,
            icmpv6(NOBODY, &neighbour(135, address6, own)),
        ),
        frame(
            "the search for duplicates of the link-local address",
            IPV6,
            icmpv6(NOBODY, &neighbour(135, local, own)),
        ),
    ]
}

/// Frames of a hostile pod that spoofs another pod.
fn spoofed(pod: &Pod, victim: &Pod) -> Vec<Frame> {
    let (own, other) = (mac(pod), mac(victim));
    let (address, address6) = (v4(pod.result.ips[0]), v6(pod.result.ips[1]));
    let (theirs, theirs6) = (v4(victim.result.ips[0]), v6(victim.result.ips[1]));
    let (gateway, gateway6) = ("10.99.0.1".parse().unwrap(), "fd99::1".parse().unwrap());
    let local = link_local(own);
    let frame = |what, from, kind, packet: &[u8]| Frame::new(what, EVERYBODY, from, kind, packet);
    let from_own = |what, kind, packet: Vec<u8>| frame(what, own, kind, &packet);
    let tagged = |kind: u16, packet: &[u8]| [&[0, 7][..], &kind.to_be_bytes(), packet].concat();
    let packet = udp4(address, gateway, 7001);
    let packet6 = ipv6(address6, local, 59, &[0; 16]);
    vec![
        frame("IPv4 by another's MAC", other, IPV4, &packet),
        frame("IPv4 by nobody's MAC", STRANGER, IPV4, &packet),
        frame("IPv6 by another's MAC", other, IPV6, &packet6),
        frame(
            "ARP by another's MAC",
            other,
            ARP,
            &arp(2, own, address, gateway),
        ),
        from_own("another's IPv4", IPV4, udp4(theirs, gateway, 7001)),
        from_own("the gateway's IPv4", IPV4, udp4(gateway, theirs, 7001)),
        from_own(
            "the loopback's IPv4",
            IPV4,
            udp4([127, 0, 0, 1].into(), gateway, 7001),
        ),
        from_own("no IPv4", IPV4, udp4([0, 0, 0, 0].into(), gateway, 7001)),
        from_own("ARP for the gateway", ARP, arp(2, own, gateway, theirs)),
        from_own("ARP for another", ARP, arp(1, own, theirs, theirs)),
        from_own(
            "ARP with another's MAC inside",
            ARP,
            arp(2, other, address, gateway),
        ),
        from_own("ARP that is not of Ethernet", ARP, {
            let mut packet = arp(2, own, address, gateway);
            packet[5] = 16;
            packet
        }),
        from_own("another's IPv6", IPV6, ipv6(theirs6, local, 59, &[0; 16])),
        from_own(
            "another's link-local",
            IPV6,
            ipv6(link_local(other), local, 59, &[0; 16]),
        ),
        from_own("no IPv6", IPV6, ipv6(NOBODY, local, 59, &[0; 16])),
        from_own(
            "an advertisement for the gateway",
            IPV6,
            icmpv6(local, &neighbour(136, gateway6, own)),
        ),
        from_own(
            "an advertisement for another",
            IPV6,
            icmpv6(address6, &neighbour(136, theirs6, own)),
        ),
        from_own(
            "an advertisement behind options",
            IPV6,
            icmpv6_behind_options(address6, &neighbour(136, theirs6, own)),
        ),
        from_own(
            "a search that keeps another from its address",
            IPV6,
            icmpv6(NOBODY, &neighbour(135, theirs6, own)),
        ),
        from_own(
            "a router",
            IPV6,
            router_advertisement(local, "2001:db8::".parse().unwrap()),
        ),
        from_own("a redirect", IPV6, icmpv6(local, &redirect(local, theirs6))),
        from_own(
            "a redirect behind options",
            IPV6,
            icmpv6_behind_options(local, &redirect(local, theirs6)),
        ),
        from_own("IPv4 in a VLAN", VLAN, tagged(IPV4, &packet)),
        from_own("IPv6 in a VLAN", VLAN, tagged(IPV6, &packet6)),
        from_own(
            "IPv4 in two VLANs",
            0x88a8,
            tagged(VLAN, &tagged(IPV4, &packet)),
        ),
        from_own("an unknown protocol", 0x88b5, vec![0; 46]),
        from_own("RARP", 0x8035, arp(3, own, address, gateway)),
    ]
}

/// A frame that passes, and can be identified.
fn last(pod: &Pod) -> Frame {
    let packet = udp4(v4(pod.ip()), "10.99.0.1".parse().unwrap(), 7001);
    Frame::new("the last frame", EVERYBODY, mac(pod), IPV4, &packet)
}

/// The pod that tries things, and another one.
async fn sly_and_other(network: &Arc<dyn PodNetwork>) -> (Pod, Pod) {
    let pod = Pod::add(network, "sly").await;
    (pod, Pod::add(network, "other").await)
}

/// The frames that the victim and the host receive.
fn seen(pod: &Pod, victim: &Pod, frames: &[Frame]) -> [Vec<&'static str>; 2] {
    let wire = inside(pod);
    let look = |at: &Frames| passing(&wire, frames, &last(pod), at);
    [look(&inside(victim)), look(&on(BRIDGE))]
}

#[test]
fn nothing_passes_but_a_pods_own_addresses() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let network = world.network();
        let pod = Pod::add(&network, "sly").await;
        let victim = Pod::add_with(&network, "victim", vec![tcp(8080, 80)]).await;
        settle(&[&pod, &victim]);
        let each: Vec<_> = own(&pod).iter().map(|frame| frame.what).collect();
        let check = |when: &str| {
            assert_eq!(seen(&pod, &victim, &own(&pod)), [&each[..]; 2], "{when}");
            let nothing: [&[&str]; 2] = [&[], &[]];
            assert_eq!(
                seen(&pod, &victim, &spoofed(&pod, &victim)),
                nothing,
                "{when}"
            );
        };
        check("at first");
        // Frames for the host itself, past the bridge.
        let reserved = [0x01, 0x80, 0xc2, 0, 0, 3];
        let packet = udp4(v4(pod.ip()), "10.99.0.1".parse().unwrap(), 7001);
        let past = Frame::new("past the bridge", reserved, mac(&pod), IPV4, &packet);
        let here = UdpSocket::bind("10.99.0.1:7001").unwrap();
        here.set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let wire = inside(&pod);
        for frame in [&past, &last(&pod)] {
            let mut bytes = frame.bytes.clone();
            if frame.what == "the last frame" {
                bytes[..6].copy_from_slice(&bridge_mac());
            } else {
                bytes[45] = b'!';
            }
            wire.send(&bytes).unwrap();
        }
        let mut bytes = [0; 64];
        here.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..12], b"twelve bytes");

        // Another program empties or removes the table; the next check finds it.
        netfilter::delete_table(TableFamily::Bridge);
        network.status().await.unwrap();
        check("after the table was removed");
        let mut batch = nft::Batch::new(TableFamily::Bridge, BRIDGE);
        let all: Vec<_> = elements("senders4").into_iter().collect();
        assert_eq!(all.len(), 2);
        batch.delete_elements("senders4", &all);
        batch.commit(|| "empty a set".to_owned()).unwrap();
        network.status().await.unwrap();
        check("after the set was emptied");

        // The next agent.
        let network = world.network();
        network.reconcile(&live(&[&pod, &victim])).await.unwrap();
        check("after a restart");
        network.del(&victim.request).await.unwrap();
        for set in ["senders4", "senders6"] {
            let left = elements(set);
            // Its address of IPv4, or that of IPv6 with the link-local one.
            assert_eq!(left.len(), if set == "senders4" { 1 } else { 2 });
        }
    });
}

fn elements(set: &str) -> std::collections::BTreeSet<nft::Element> {
    let mut nft = nft::Connection::open().unwrap();
    nft.elements(TableFamily::Bridge, BRIDGE, set).unwrap()
}

fn bridge_mac() -> [u8; 6] {
    let link = RouteSocket::open().unwrap().link(BRIDGE).unwrap();
    link.unwrap().mac.try_into().unwrap()
}

#[test]
fn a_pod_with_ipv4_alone_sends_no_ipv6() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let (pod, other) = sly_and_other(&network).await;
        settle(&[&pod, &other]);
        let (own, local) = (mac(&pod), link_local(mac(&pod)));
        let frames = [
            ipv6(local, local, 59, &[0; 16]),
            icmpv6(NOBODY, &neighbour(135, local, own)),
        ]
        .map(|packet| Frame::new("IPv6", EVERYBODY, own, IPV6, &packet));
        let nothing: [&[&str]; 2] = [&[], &[]];
        assert_eq!(seen(&pod, &other, &frames), nothing);
    });
}

/// As with CAP_NET_ADMIN: the pod's own kernel then sends what the pod wants.
#[test]
fn a_pod_that_changes_its_addresses_is_held_too() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let network = world.network();
        let (pod, other) = sly_and_other(&network).await;
        let listener = other.listen(80);
        let change = |changes: Changes| {
            pod.inside(|| {
                let mut socket = RouteSocket::open().unwrap();
                socket.apply(changes, || "change eth0".to_owned()).unwrap();
            });
        };
        let set_mac = |mac| {
            let mut changes = Changes::default();
            changes.set_mac("eth0", mac);
            change(changes);
        };
        let ears = other.udp(53);
        let tell = || pod.tell(at(other.ip(), 53), "from the pod");
        let port = |family: usize| at(other.result.ips[family], 80);
        // The connection comes first: a bridge that forwards nothing yet loses a datagram.
        let reached = |family| {
            let open = pod.inside(|| open(port(family)));
            tell();
            open
        };
        let held = |family| {
            tell();
            pod.inside(|| closed(port(family)))
        };
        let heard = || {
            let host = UdpSocket::bind("0.0.0.0:0").unwrap();
            host.send_to(b"from the host", at(other.ip(), 53)).unwrap();
            let (mut bytes, mut count) = ([0; 16], 0);
            while let Ok((length, _)) = ears.recv_from(&mut bytes)
                && &bytes[..length] != b"from the host"
            {
                count += 1;
            }
            count
        };
        assert!(reached(0) && reached(1));
        assert_eq!(heard(), 2);
        set_mac(STRANGER);
        assert!(held(0) && held(1));
        set_mac(mac(&other));
        assert!(held(0) && held(1));
        assert_eq!(heard(), 0);
        set_mac([0x0a, 0x58, 0x0a, 0x63, 0x00, 0x02]);
        assert!(reached(0) && reached(1));
        assert_eq!(heard(), 2);

        let link = pod.link("eth0").unwrap().index;
        let address = |address: &str, prefix| Address {
            link,
            address: ip(address),
            prefix,
        };
        let mut changes = Changes::default();
        changes
            .delete_address(address("10.99.0.2", 32))
            .add_address(address("10.99.0.9", 32))
            .delete_address(address("fd99::2", 128))
            .add_address(address("fd99::9", 128));
        change(changes);
        assert!(held(0) && held(1));
        assert_eq!(heard(), 0);
        listener.set_nonblocking(true).unwrap();
        while let Ok((_, from)) = listener.accept() {
            let from = from.ip().to_canonical();
            assert!(pod.result.ips.contains(&from), "{from}");
        }
    });
}

#[test]
fn this_kernel_takes_the_rules_and_the_question_leaves_nothing() {
    World::run(&[], async |_| {
        assert_eq!(rubelet_cni::missing_sender_rules(), None);
        assert!(!nft::has_table(TableFamily::Bridge, "probe").unwrap());
    });
}
