//! 127.0.0.1 of the host leads to pods only for the host itself.

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    time::Duration,
};

use rubelet_host::{
    netlink::{Address, Changes, Route, RouteSocket},
    netns,
    nft::TableFamily,
};

use crate::{
    netfilter,
    packets::{Frame, inside, mac, udp4, v4},
    world::{BRIDGE, Pod, World, at, closed, ip, links, outside, reach, tcp},
};

/// Sends what is for 127.0.0.1 by a gateway, as root on another machine can.
fn lead_loopback_by(gateway: &str, interface: &str) {
    fs::write(
        format!("/proc/sys/net/ipv4/conf/{interface}/route_localnet"),
        "1",
    )
    .unwrap();
    let mut socket = RouteSocket::open().unwrap();
    let link = |socket: &mut RouteSocket, name| socket.link(name).unwrap().unwrap().index;
    let (lo, out) = (link(&mut socket, "lo"), link(&mut socket, interface));
    let mut changes = Changes::default();
    changes
        .delete_address(Address {
            link: lo,
            address: ip("127.0.0.1"),
            prefix: 8,
        })
        .add_route(Route {
            destination: ip("127.0.0.1"),
            prefix: 32,
            gateway: Some(ip(gateway)),
            link: out,
            source: None,
        });
    socket.apply(changes, || "a sly route".to_owned()).unwrap();
}

#[test]
fn a_port_of_127_0_0_1_cannot_be_reached_by_a_neighbour() {
    World::run(&["10.99.0.0/16"], async |world| {
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        let mut port = tcp(8080, 80);
        port.host_ip = Some(ip("127.0.0.1"));
        let pod = Pod::add_with(&network, "web", vec![port, tcp(8081, 80)]).await;
        let listener = pod.listen(80);
        netns::within(&lan, || {
            lead_loopback_by("192.0.2.1", "lan0");
            for port in [8080, 8081] {
                assert!(closed(at(ip("127.0.0.1"), port)), "{port}");
            }
            assert!(reach(at(ip("192.0.2.1"), 8081), &listener).is_some());
        })
        .unwrap();
        for port in [8080, 8081] {
            assert!(reach(at(ip("127.0.0.1"), port), &listener).is_some());
        }
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "the packets arrived");
    });
}

#[test]
fn a_pod_cannot_speak_as_the_hosts_loopback() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let pod = Pod::add(&network, "sly").await;
        // The guard holds by itself, without the rules for what pods send.
        netfilter::delete_table(TableFamily::Bridge);
        let here = UdpSocket::bind("10.99.0.1:7001").unwrap();
        here.set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let bridge = links().into_iter().find(|link| link.name == BRIDGE);
        let bridge = bridge.unwrap().mac.try_into().unwrap();
        let wire = inside(&pod);
        for from in ["127.0.0.1".parse().unwrap(), v4(pod.ip())] {
            let packet = udp4(from, "10.99.0.1".parse().unwrap(), 7001);
            let frame = Frame::new("a packet", bridge, mac(&pod), 0x0800, &packet);
            wire.send(&frame.bytes).unwrap();
        }
        let (_, from) = here.recv_from(&mut [0; 64]).unwrap();
        assert_eq!(from.ip(), pod.ip());
    });
}

fn localnet() -> String {
    let key = format!("/proc/sys/net/ipv4/conf/{BRIDGE}/route_localnet");
    fs::read_to_string(key).unwrap().trim().to_owned()
}

/// Whether a pod can reach a listener on the host's loopback.
fn is_exposed(pod: &Pod) -> bool {
    let secret = TcpListener::bind("127.0.0.1:7000").unwrap();
    assert!(reach(at(ip("127.0.0.1"), 7000), &secret).is_some());
    pod.inside(|| !closed(at(ip("127.0.0.1"), 7000)))
}

#[test]
fn the_guard_comes_back_when_somebody_removes_or_changes_it() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let web = Pod::add_with(&network, "web", vec![tcp(8080, 80)]).await;
        let sly = Pod::add(&network, "sly").await;
        sly.inside(|| lead_loopback_by("10.99.0.1", "eth0"));
        let listener = web.listen(80);
        let changes: [(&str, fn()); 4] = [
            ("flushed", || netfilter::flush_chain("guard")),
            ("a rule in front", || netfilter::accept_all("guard")),
            ("switched off", netfilter::make_dormant),
            ("removed", || netfilter::delete_table(TableFamily::Inet)),
        ];
        for (what, change) in changes {
            change();
            network.status().await.unwrap();
            assert_eq!(localnet(), "1", "{what}");
            assert!(!is_exposed(&sly), "{what}");
            assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        }
    });
}

#[test]
fn without_the_guard_127_0_0_1_leads_nowhere() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        network.status().await.unwrap();
        assert_eq!(localnet(), "1");
        // Another program takes the table, and keeps it.
        netfilter::delete_table(TableFamily::Inet);
        let owner = netfilter::own_table(TableFamily::Inet);
        network.status().await.unwrap();
        assert_eq!(localnet(), "0");
        // Nor does it at the next start, whatever was set before.
        let key = format!("/proc/sys/net/ipv4/conf/{BRIDGE}/route_localnet");
        fs::write(key, "1").unwrap();
        let network = world.network();
        network.status().await.unwrap();
        assert_eq!(localnet(), "0");
        drop(owner);
        network.status().await.unwrap();
        assert_eq!(localnet(), "1");
    });
}
