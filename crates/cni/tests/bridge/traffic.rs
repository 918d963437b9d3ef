//! Which pods and hosts reach each other, and by which address.

use std::{
    net::{IpAddr, TcpListener, UdpSocket},
    time::Duration,
};

use rubelet_host::{netns, packet_tap::PacketTap};

use crate::packets;
use crate::world::{BRIDGE, Pod, World, at, ip, links, outside, reach, veths, veths_become};

#[test]
fn the_first_packets_to_a_pod_are_not_lost() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        for number in 0..20 {
            // An interface whose peer has the same number is activated up to a second later, unless
            // the kernel is asked about it.
            let pod = Pod::add(&network, &format!("pod{number}")).await;
            let mut veths = links().into_iter().filter(|link| link.kind == "veth");
            assert!(veths.all(|veth| veth.running));
            drop(pod);
        }
    });
}

#[test]
fn pods_reach_each_other_the_host_and_the_outside() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        network.status().await.unwrap();
        let (one, two) = (
            Pod::add(&network, "one").await,
            Pod::add(&network, "two").await,
        );
        assert_eq!(one.result.interface, "eth0");
        assert_eq!(one.result.ips, [ip("10.99.0.2"), ip("fd99::2")]);
        assert_eq!(two.result.ips, [ip("10.99.0.3"), ip("fd99::3")]);
        assert!(one.result.mac.is_some() && one.result.warnings.is_empty());
        assert_eq!(network.warnings().await, Vec::<String>::new());

        let listener = two.listen(80);
        let in_host = TcpListener::bind("[::]:81").unwrap();
        let in_lan = netns::within(&lan, || TcpListener::bind("[::]:82").unwrap()).unwrap();
        for family in [0, 1] {
            // Pods see each other's own addresses every time: no ICMP redirects are sent.
            for _ in 0..20 {
                let seen = one.reaches(at(two.result.ips[family], 80), &listener);
                assert_eq!(seen, Some(one.result.ips[family]));
            }
            let gateway = [ip("10.99.0.1"), ip("fd99::1")][family];
            assert_eq!(
                one.reaches(at(gateway, 81), &in_host),
                Some(one.result.ips[family])
            );
            assert_eq!(
                reach(at(two.result.ips[family], 80), &listener),
                Some(gateway)
            );
            // The outside sees the host.
            let there = [ip("192.0.2.2"), ip("fd00:2::2")][family];
            let host = [ip("192.0.2.1"), ip("fd00:2::1")][family];
            assert_eq!(one.reaches(at(there, 82), &in_lan), Some(host));
        }
        network.check(&one.request).await.unwrap();
    });
}

#[test]
fn pods_are_told_of_no_shorter_way_to_each_other() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        // Linux looks where each packet came from, and sends redirects of IPv4.
        set("ipv4/conf/all/rp_filter", "2");
        // The bridge has an address at once that those of IPv6 can come from.
        set("ipv6/conf/default/accept_dad", "0");
        let network = world.network();
        let (one, two) = (
            Pod::add(&network, "one").await,
            Pod::add(&network, "two").await,
        );
        let taps = [&one, &two].map(|pod| {
            let index = pod.link("eth0").unwrap().index;
            pod.inside(|| PacketTap::open(index).unwrap())
        });
        for (from, to) in [(&one, &two), (&two, &one)] {
            let listener = to.listen(80);
            for family in [0, 1] {
                let seen = from.reaches(at(to.result.ips[family], 80), &listener);
                assert_eq!(seen, Some(from.result.ips[family]));
            }
        }
        let mut buffer = [0; 256];
        for tap in &taps {
            while let Some((_, packet)) = tap.next(&mut buffer).unwrap() {
                // Version and type.
                let redirect = match packet[0] >> 4 {
                    4 => packet[20] == 5,
                    _ => packet[40] == 137,
                };
                assert!(!redirect, "{packet:?}");
            }
        }
    });
}

fn set(key: &str, value: &str) {
    std::fs::write(format!("/proc/sys/net/{key}"), value).unwrap();
}

#[test]
fn ranges_that_are_exempt_see_the_pods_own_address() {
    World::run(&["10.99.0.0/16"], async |mut world| {
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        world.settings.masquerade_exempt = vec!["192.0.2.0/24".parse().unwrap()];
        let network = world.network();
        let pod = Pod::add(&network, "one").await;
        let in_lan = netns::within(&lan, || TcpListener::bind("0.0.0.0:82").unwrap()).unwrap();
        // The machine outside has no way back to the pod; the host shows it.
        netns::within(&lan, || {
            let mut socket = rubelet_host::netlink::RouteSocket::open().unwrap();
            let link = socket.link("lan0").unwrap().unwrap().index;
            let mut changes = rubelet_host::netlink::Changes::default();
            changes.add_route(rubelet_host::netlink::Route::default_by(
                ip("192.0.2.1"),
                link,
            ));
            socket.apply(changes, || "a way back".to_owned()).unwrap();
        })
        .unwrap();
        assert_eq!(
            pod.reaches(at(ip("192.0.2.2"), 82), &in_lan),
            Some(pod.ip())
        );
    });
}

#[test]
fn a_pod_has_its_interface_the_moment_it_is_added_and_not_after_it_went() {
    World::run(&["fd99::/64"], async |world| {
        let network = world.network();
        let pod = Pod::add(&network, "six").await;
        assert_eq!(pod.result.ips, [ip("fd99::2")]);
        // Without waiting for the search for others with the same address.
        let listener = pod.listen(80);
        assert!(reach(at(pod.ip(), 80), &listener).is_some());
        let name = pod.result.host_interface.clone().unwrap();
        assert!(veths().contains(&name));
        network.del(&pod.request).await.unwrap();
        network.del(&pod.request).await.unwrap();
        veths_become(0);
        assert_eq!(pod.link("eth0"), None);
        assert!(network.check(&pod.request).await.is_err());
    });
}

#[test]
fn pods_beyond_the_bridges_ports_are_reached_like_the_others() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let network = world.network();
        let first = Pod::add(&network, "first").await;
        let bridge = links()
            .into_iter()
            .find(|link| link.name == BRIDGE)
            .unwrap();
        // Other ports fill the bridge up.
        let elsewhere = netns::create().unwrap();
        fill(&bridge, &elsewhere);
        let last = Pod::add(&network, "last").await;
        let link = last.result.host_interface.clone().unwrap();
        let link = links()
            .into_iter()
            .find(|found| found.name == link)
            .unwrap();
        assert_eq!(link.master, None);
        let (in_first, in_last) = (first.listen(80), last.listen(80));
        for family in [0, 1] {
            let (one, two): (IpAddr, IpAddr) = (first.result.ips[family], last.result.ips[family]);
            assert_eq!(first.reaches(at(two, 80), &in_last), Some(one));
            assert_eq!(last.reaches(at(one, 80), &in_first), Some(two));
            assert!(reach(at(two, 80), &in_last).is_some());
        }
        network.check(&last.request).await.unwrap();
        a_pod_without_the_bridge_is_held_to_its_addresses(&first, &last);
        network.del(&last.request).await.unwrap();
        last.loses_link("eth0");
    });
}

fn a_pod_without_the_bridge_is_held_to_its_addresses(first: &Pod, last: &Pod) {
    let here = UdpSocket::bind("10.99.0.1:7001").unwrap();
    here.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let name = last.result.host_interface.as_deref().unwrap();
    let end = links().into_iter().find(|link| link.name == name).unwrap();
    let wire = packets::inside(last);
    for from in [
        packets::v4(first.ip()),
        [192, 0, 2, 9].into(),
        [127, 0, 0, 1].into(),
        packets::v4(last.ip()),
    ] {
        let to = end.mac.clone().try_into().unwrap();
        let packet = packets::udp4(from, [10, 99, 0, 1].into(), 7001);
        let frame = packets::Frame::new("UDP", to, packets::mac(last), 0x0800, &packet);
        wire.send(&frame.bytes).unwrap();
    }
    let (_, from) = here.recv_from(&mut [0; 64]).unwrap();
    assert_eq!(from.ip(), last.ip());
}

fn fill(bridge: &rubelet_host::netlink::Link, elsewhere: &std::os::fd::OwnedFd) {
    use rubelet_host::netlink::{Changes, RouteSocket, Veth};
    use std::os::fd::AsFd;
    let mut socket = RouteSocket::open().unwrap();
    for number in 0..1022 {
        let (name, peer) = (format!("fill{number}"), format!("peer{number}"));
        let mut changes = Changes::default();
        changes.add_veth(Veth {
            name: &name,
            mac: [2, 0, 0, 1, (number / 256) as u8, (number % 256) as u8],
            master: Some(bridge.index),
            peer: &peer,
            peer_mac: [2, 0, 0, 2, (number / 256) as u8, (number % 256) as u8],
            peer_netns: elsewhere.as_fd(),
            mtu: 1500,
        });
        socket.apply(changes, || format!("make {name}")).unwrap();
    }
}
