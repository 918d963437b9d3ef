//! Ports of the host that lead to pods.

use std::net::{IpAddr, TcpListener, UdpSocket};

use rubelet_cni::{PortMapping, Protocol};
use rubelet_host::{netns, nft::TableFamily};

use crate::world::{Pod, World, at, call_netfilter, closed, ip, outside, reach, settle, tcp};

fn on(host_ip: &str, mapping: PortMapping) -> PortMapping {
    PortMapping {
        host_ip: Some(ip(host_ip)),
        ..mapping
    }
}

#[test]
fn a_port_of_the_host_leads_to_the_pod_from_everywhere() {
    from_everywhere("0");
}

#[test]
fn it_does_so_where_the_bridge_calls_netfilter() {
    from_everywhere("1");
}

fn from_everywhere(bridge_nf: &str) {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        call_netfilter(bridge_nf);
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        let web = Pod::add_with(&network, "web", vec![tcp(8080, 80)]).await;
        let other = Pod::add(&network, "other").await;
        let listener = web.listen(80);
        let hosts = [ip("192.0.2.1"), ip("fd00:2::1")];
        let gateways = [ip("10.99.0.1"), ip("fd99::1")];
        for family in [0, 1] {
            let there = at(hosts[family], 8080);
            // From outside, with the client's address.
            let seen = netns::within(&lan, || reach(there, &listener)).unwrap();
            assert_eq!(seen, Some([ip("192.0.2.2"), ip("fd00:2::2")][family]));
            // From the host, by the address outside and by the bridge's.
            assert!(reach(there, &listener).is_some());
            assert!(reach(at(gateways[family], 8080), &listener).is_some());
            // From another pod, with that pod's address.
            assert_eq!(
                other.reaches(there, &listener),
                Some(other.result.ips[family])
            );
            let gateway = at(gateways[family], 8080);
            assert_eq!(
                other.reaches(gateway, &listener),
                Some(other.result.ips[family])
            );
            assert_eq!(web.reaches(gateway, &listener), Some(gateways[family]));
            // From the pod itself, which sees the host.
            assert_eq!(web.reaches(there, &listener), Some(gateways[family]));
        }
        // By the loopback; for IPv6 the kernel knows no such way, and says so at once.
        assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        assert!(closed(at(ip("::1"), 8080)));
        // Ports that were not requested.
        assert!(closed(at(ip("192.0.2.1"), 8081)));

        network.del(&web.request).await.unwrap();
        for to in ["127.0.0.1", "192.0.2.1", "fd00:2::1"] {
            assert!(closed(at(ip(to), 8080)), "{to}");
        }
    });
}

#[test]
fn a_port_can_be_opened_on_one_address() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let lan = outside(
            "rbtlan",
            [("192.0.2.1", "192.0.2.2"), ("fd00:2::1", "fd00:2::2")],
        );
        let network = world.network();
        let ports = vec![
            on("127.0.0.1", tcp(8080, 80)),
            on("fd00:2::1", tcp(8081, 80)),
            on("0.0.0.0", tcp(8082, 80)),
        ];
        let pod = Pod::add_with(&network, "web", ports).await;
        let listener = pod.listen(80);
        assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        netns::within(&lan, || {
            assert!(closed(at(ip("192.0.2.1"), 8080)));
            assert!(closed(at(ip("192.0.2.1"), 8081)));
            assert!(reach(at(ip("fd00:2::1"), 8081), &listener).is_some());
            assert!(reach(at(ip("192.0.2.1"), 8082), &listener).is_some());
            assert!(closed(at(ip("fd00:2::1"), 8082)));
        })
        .unwrap();
        // A second pod may have the same port of another address.
        let ports = vec![on("192.0.2.1", tcp(8080, 80))];
        let second = Pod::add_with(&network, "second", ports).await;
        let second_listener = second.listen(80);
        netns::within(&lan, || {
            assert!(reach(at(ip("192.0.2.1"), 8080), &second_listener).is_some());
        })
        .unwrap();
    });
}

#[test]
fn udp_follows_the_pod_that_has_the_port_now() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let port = PortMapping {
            protocol: Protocol::Udp,
            ..tcp(5353, 53)
        };
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client
            .set_read_timeout(Some(std::time::Duration::from_secs(60)))
            .unwrap();
        client.connect("127.0.0.1:5353").unwrap();
        let mut bytes = [0; 16];
        for name in ["first", "second"] {
            // The client continues with its socket, as a resolver does.
            let pod = Pod::add_with(&network, name, vec![port.clone()]).await;
            let server = pod.udp(53);
            settle(&[&pod]);
            client.send(name.as_bytes()).unwrap();
            let (length, from) = server.recv_from(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], name.as_bytes());
            server.send_to(b"answer", from).unwrap();
            assert_eq!(client.recv(&mut bytes).unwrap(), 6);
            network.del(&pod.request).await.unwrap();
        }
    });
}

#[test]
fn a_port_that_is_taken_is_refused_with_both_names() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let first = Pod::add_with(&network, "first", vec![tcp(8080, 80)]).await;
        let mut second = Pod::alone("second");
        second.request.port_mappings = vec![tcp(8080, 80)];
        let error = network.add(&second.request).await.unwrap_err().to_string();
        for part in ["default/first", "default/second", "8080/tcp"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(second.link("eth0"), None);
        // So it is for an agent that starts now.
        let network = world.network();
        network.add(&second.request).await.unwrap_err();
        network.del(&first.request).await.unwrap();
        network.add(&second.request).await.unwrap();
    });
}

#[test]
fn ports_that_can_never_work_are_refused() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        for (host_ip, reason) in [("::1", "127.0.0.1"), ("fd00:2::1", "family")] {
            let mut pod = Pod::alone("web");
            pod.request.port_mappings = vec![on(host_ip, tcp(8080, 80))];
            let error = network.add(&pod.request).await.unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    });
}

#[test]
fn pods_cannot_reach_what_listens_on_the_hosts_loopback() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let pod = Pod::add(&network, "web").await;
        let secret = TcpListener::bind("127.0.0.1:7000").unwrap();
        assert!(reach(at(ip("127.0.0.1"), 7000), &secret).is_some());
        pod.inside(|| {
            // As a pod with CAP_NET_ADMIN would do it: 127.0.0.0/8 by the gateway.
            use rubelet_host::netlink::{Changes, Route, RouteSocket};
            std::fs::write("/proc/sys/net/ipv4/conf/eth0/route_localnet", "1").unwrap();
            let mut socket = RouteSocket::open().unwrap();
            let (lo, eth0) = ("lo", socket.link("eth0").unwrap().unwrap().index);
            let mut changes = Changes::default();
            changes.add_route(Route {
                destination: ip("127.0.0.1"),
                prefix: 32,
                gateway: Some(ip("10.99.0.1")),
                link: eth0,
                source: None,
            });
            socket.apply(changes, || "a sly route".to_owned()).unwrap();
            let index = socket.link(lo).unwrap().unwrap().index;
            let mut changes = Changes::default();
            changes.delete_address(rubelet_host::netlink::Address {
                link: index,
                address: ip("127.0.0.1"),
                prefix: 8,
            });
            socket
                .apply(changes, || "no own loopback".to_owned())
                .unwrap();
            assert!(closed(at(ip("127.0.0.1"), 7000)));
        });
        secret.set_nonblocking(true).unwrap();
        assert!(secret.accept().is_err(), "the packets arrived");
    });
}

#[test]
fn rules_come_back_when_somebody_flushes_them() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        let first = Pod::add_with(&network, "first", vec![tcp(8080, 80)]).await;
        let listener = first.listen(80);
        let flush = || {
            let mut batch = rubelet_host::nft::Batch::new(TableFamily::Inet, crate::world::BRIDGE);
            batch.delete_table();
            batch.commit(|| "flush".to_owned()).unwrap();
        };
        flush();
        assert!(closed(at(ip("127.0.0.1"), 8080)));
        // The next pod with a port brings all back, and so does the next look.
        let second = Pod::add_with(&network, "second", vec![tcp(8081, 80)]).await;
        assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        flush();
        network.status().await.unwrap();
        assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        flush();
        network.del(&second.request).await.unwrap();
        assert!(reach(at(ip("127.0.0.1"), 8080), &listener).is_some());
        assert!(closed(at(ip("127.0.0.1"), 8081)));
        let _: IpAddr = first.ip();
    });
}

/// As `nft` shows it, where that program is: not every kernel has SCTP itself.
#[test]
fn ports_of_sctp_are_translated_as_others() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |world| {
        let network = world.network();
        let port = PortMapping {
            protocol: Protocol::Sctp,
            ..tcp(9899, 36412)
        };
        let pod = Pod::add_with(&network, "core", vec![port]).await;
        let shown = || {
            let mut nft = std::process::Command::new("nft");
            nft.args(["list", "table", "inet", crate::world::BRIDGE]);
            nft.output()
                .map(|shown| String::from_utf8(shown.stdout).unwrap())
        };
        let Ok(text) = shown() else {
            rubelet_needs::missing("nft");
            return;
        };
        for line in [
            "elements = { sctp . 9899 : 10.99.0.2 . 36412 }",
            "elements = { sctp . 9899 : fd99::2 . 36412 }",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        network.del(&pod.request).await.unwrap();
        assert!(!shown().unwrap().contains("sctp"));
    });
}

/// The rules as `nft` shows them, if that program is installed.
#[test]
fn the_rules_read_as_they_are_meant() {
    World::run(&["10.99.0.0/16", "fd99::/64"], async |mut world| {
        world.settings.masquerade_exempt = vec!["10.0.0.0/9".parse().unwrap()];
        let network = world.network();
        let ports = vec![tcp(8080, 80), on("192.0.2.1", tcp(8081, 81))];
        Pod::add_with(&network, "web", ports).await;
        let mut text = String::new();
        for family in ["inet", "bridge"] {
            let mut nft = std::process::Command::new("nft");
            nft.args(["list", "table", family, crate::world::BRIDGE]);
            let Ok(shown) = nft.output() else {
                rubelet_needs::missing("nft");
                return;
            };
            text.push_str(&String::from_utf8(shown.stdout).unwrap());
        }
        for line in [
            "\"rbtpp24*\" jump from-pods",
            "iifname . ether saddr . ip saddr @senders4 accept",
            "iifname . ether saddr . arp saddr ip @senders4 iifname . arp saddr ether . arp saddr ip @senders4 accept",
            "icmpv6 type nd-router-advert drop",
            "iifname . ether saddr . ip6 saddr @senders6 accept",
            "ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop",
            "elements = { tcp . 8080 : 10.99.0.2 . 80 }",
            "elements = { tcp . 8080 : fd99::2 . 80 }",
            "elements = { 192.0.2.1 . tcp . 8081 : 10.99.0.2 . 81 }",
            "elements = { 10.99.0.2 . 10.99.0.2 }",
            "type nat hook prerouting priority dstnat; policy accept;",
            "type filter hook prerouting priority raw; policy accept;",
            "fib daddr type local jump host-ports",
            "iifname != \"lo\" ip daddr 127.0.0.0/8 drop",
            "dnat ip to meta l4proto . th dport map @ports4",
            "dnat ip6 to ip6 daddr . meta l4proto . th dport map @ports6-of-address",
            "ip6 daddr ::1 return",
            "oifname \"rbt0\" icmp type redirect drop",
            "oifname \"rbt0\" icmpv6 type nd-redirect drop",
            "ip saddr 10.99.0.0/16 ip daddr != 224.0.0.0/4 ip daddr != 10.99.0.0/16 ip daddr != 10.0.0.0/9 masquerade fully-random",
            "ip6 saddr fd99::/64 ip6 daddr != ff00::/8 ip6 daddr != fd99::/64 masquerade fully-random",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    });
}
