//! Pods that play the router: this host gets no route and no address from them.

use std::{fs, net::UdpSocket, time::Duration};

use rubelet_host::{netlink::RouteSocket, nft::TableFamily};

use crate::{
    netfilter,
    packets::{EVERYBODY, Frame, bytes, inside, link_local, mac, router_advertisement, udp4, v4},
    world::{BRIDGE, Pod, World, ip, links, outside, veths},
};

const OFFERED: &str = "2001:db8:bad::";
const IPV6: u16 = 0x86dd;
const IPV4: u16 = 0x0800;

/// The addresses and routes that the host accepted from the advertisement.
fn taken(from: std::net::Ipv6Addr) -> Vec<String> {
    let mut socket = RouteSocket::open().unwrap();
    let offered = ip(OFFERED).to_string();
    let prefix = offered.trim_end_matches(':');
    let addresses = socket.addresses().unwrap();
    let addresses = addresses
        .iter()
        .filter(|address| address.address.to_string().starts_with(prefix))
        .map(|address| format!("{address:?}"));
    let routes = socket.routes().unwrap();
    let routes = routes
        .iter()
        .filter(|route| {
            route.gateway == Some(from.into()) || route.destination.to_string().starts_with(prefix)
        })
        .map(|route| format!("{route:?}"));
    addresses.chain(routes).collect()
}

fn nothing_is_taken(subnets: &[&str]) {
    World::run(subnets, async |world| {
        outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        network.status().await.unwrap();
        let pod = Pod::add(&network, "router").await;
        // The settings of the interfaces hold by themselves, without the rules for what pods send.
        netfilter::delete_table(TableFamily::Bridge);
        let (own, from) = (mac(&pod), link_local(mac(&pod)));
        let offer = router_advertisement(from, OFFERED.parse().unwrap());
        let here = UdpSocket::bind("10.99.0.1:7001").unwrap();
        here.set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let bridge = links().into_iter().find(|link| link.name == BRIDGE);
        let bridge = bridge.unwrap().mac.try_into().unwrap();
        let wire = inside(&pod);
        for to in [
            [0x33, 0x33, 0, 0, 0, 1],
            EVERYBODY,
            bridge,
            // Not for the bridge: the host takes it from the pod's interface.
            [0x01, 0x80, 0xc2, 0, 0, 3],
        ] {
            wire.send(&bytes(to, own, IPV6, &offer)).unwrap();
            // Frames come in their order: once this one is here, the host is done with the other.
            let packet = udp4(v4(pod.ip()), "10.99.0.1".parse().unwrap(), 7001);
            let last = Frame::new("a packet", bridge, own, IPV4, &packet);
            wire.send(&last.bytes).unwrap();
            here.recv(&mut [0; 64]).unwrap();
            assert_eq!(taken(from), Vec::<String>::new(), "{to:02x?}");
        }
        for name in veths().into_iter().chain([BRIDGE.to_owned()]) {
            let value = |key: &str| {
                fs::read_to_string(format!("/proc/sys/net/{key}"))
                    .unwrap()
                    .trim()
                    .to_owned()
            };
            if name != "rbtlan" {
                assert_eq!(value(&format!("ipv6/conf/{name}/accept_ra")), "0", "{name}");
                let redirects = format!("ipv6/conf/{name}/accept_redirects");
                assert_eq!(value(&redirects), "0", "{name}");
                let redirects = format!("ipv4/conf/{name}/accept_redirects");
                assert_eq!(value(&redirects), "0", "{name}");
            } else if subnets.len() == 2 {
                // Where the host had its own routes from, it still has them.
                assert_eq!(value(&format!("ipv6/conf/{name}/accept_ra")), "2");
            }
        }
        pod.inside(|| {
            let value = fs::read_to_string("/proc/sys/net/ipv6/conf/eth0/accept_ra").unwrap();
            assert_eq!(value.trim(), "0");
        });
    });
}

#[test]
fn a_pod_gives_an_ipv4_host_no_route_and_no_address() {
    nothing_is_taken(&["10.99.0.0/16"]);
}

#[test]
fn a_pod_gives_a_host_with_both_families_no_route_and_no_address() {
    nothing_is_taken(&["10.99.0.0/16", "fd99::/64"]);
}

#[test]
fn interfaces_of_pods_that_run_are_set_at_the_next_start() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let pod = Pod::add(&network, "old").await;
        let name = pod.result.host_interface.clone().unwrap();
        let key = |name: &str| format!("/proc/sys/net/ipv6/conf/{name}/accept_ra");
        for name in [name.as_str(), BRIDGE] {
            fs::write(key(name), "2").unwrap();
        }
        let network = world.network();
        network
            .reconcile(&crate::world::live(&[&pod]))
            .await
            .unwrap();
        for name in [name.as_str(), BRIDGE] {
            assert_eq!(fs::read_to_string(key(name)).unwrap().trim(), "0", "{name}");
        }
    });
}
