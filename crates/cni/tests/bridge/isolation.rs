//! Pods that are kept from one another.

use std::net::{TcpListener, UdpSocket};

use rubelet_host::{
    netlink::{Changes, Route, RouteSocket},
    netns,
};

use crate::{
    packets::mac,
    world::{Pod, World, at, call_netfilter, closed, ip, live, outside, reach, tcp},
};

/// Reaches another pod without the host's routing, as a pod with CAP_NET_ADMIN can.
fn go_straight(pod: &Pod, to: &Pod) {
    let there = mac(to);
    pod.inside(|| {
        let mut socket = RouteSocket::open().unwrap();
        let link = socket.link("eth0").unwrap().unwrap().index;
        let mut changes = Changes::default();
        for &address in &to.result.ips {
            changes
                .add_route(Route {
                    destination: address,
                    prefix: if address.is_ipv4() { 32 } else { 128 },
                    gateway: None,
                    link,
                    source: None,
                })
                .add_neighbour(link, address, there);
        }
        socket.apply(changes, || "a short way".to_owned()).unwrap();
    });
}

#[test]
fn isolated_pods_reach_the_host_and_the_outside_and_no_other_pod() {
    keeps_pods_apart("0");
}

#[test]
fn they_do_so_where_the_bridge_calls_netfilter() {
    keeps_pods_apart("1");
}

fn keeps_pods_apart(bridge_nf: &str) {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |mut world| {
        let calls = call_netfilter(bridge_nf);
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        let one = Pod::add(&network, "one").await;
        let two = Pod::add_with(&network, "two", vec![tcp(8080, 80)]).await;
        let listener = two.listen(80);
        let in_host = TcpListener::bind("[::]:81").unwrap();
        let in_lan = netns::within(&lan, || TcpListener::bind("[::]:82").unwrap()).unwrap();
        let hosts = [ip("192.0.2.1"), ip("fd00:2::1")];
        // Without the option they reach each other.
        for (family, &host) in hosts.iter().enumerate() {
            assert!(
                one.reaches(at(two.result.ips[family], 80), &listener)
                    .is_some()
            );
            assert!(one.reaches(at(host, 8080), &listener).is_some());
        }
        // It counts for those that run, from the next start on.
        world.settings.isolate_pods = true;
        let network = world.network();
        network.reconcile(&live(&[&one, &two])).await.unwrap();
        let three = Pod::add(&network, "three").await;
        let both = [&one, &three];
        let check = || {
            for (pod, family) in both.iter().flat_map(|pod| [(pod, 0), (pod, 1)]) {
                let host = hosts[family];
                pod.inside(|| {
                    assert!(closed(at(two.result.ips[family], 80)));
                    assert!(closed(at(host, 8080)));
                });
                assert!(pod.reaches(at(host, 81), &in_host).is_some());
                let there = [ip("192.0.2.2"), ip("fd00:2::2")][family];
                assert!(pod.reaches(at(there, 82), &in_lan).is_some());
            }
        };
        check();
        let ears = two.udp(53);
        for pod in both {
            go_straight(pod, &two);
            pod.tell(at(two.ip(), 53), "straight");
        }
        check();
        let host = UdpSocket::bind("0.0.0.0:0").unwrap();
        host.send_to(b"the host", at(two.ip(), 53)).unwrap();
        let mut bytes = [0; 16];
        let (length, _) = ears.recv_from(&mut bytes).unwrap();
        assert_eq!(&bytes[..length], b"the host");
        // The host and the outside reach pods, and a pod itself.
        for (family, &host) in hosts.iter().enumerate() {
            assert!(reach(at(two.result.ips[family], 80), &listener).is_some());
            let seen = netns::within(&lan, || reach(at(host, 8080), &listener)).unwrap();
            assert!(seen.is_some());
            // Translated while it is still on the bridge, a frame would leave by the port it came in by.
            if !calls {
                assert!(two.reaches(at(host, 8080), &listener).is_some());
            }
        }
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "the packets arrived");
    });
}
