//! Traces, and the ways that packets took.

use std::{
    collections::BTreeSet,
    net::{IpAddr, TcpListener, UdpSocket},
    time::Duration,
};

use rubelet_netprobe::{
    packet::Family,
    trace::{
        TraceEvent, TraceMethod, TraceOptions,
        event::{Hop, HopSummary, TracePath},
    },
};

use crate::{
    relay::{DelayedChain, HOPS},
    world::{Chain, End, MTU, Node, address, both, link},
};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];
const METHODS: [TraceMethod; 3] = [TraceMethod::Udp, TraceMethod::Icmp, TraceMethod::Tcp];

fn options(method: TraceMethod) -> TraceOptions {
    TraceOptions {
        method,
        ..TraceOptions::default()
    }
}

fn hops(events: &[TraceEvent]) -> Vec<Hop> {
    let hops = events.iter().filter_map(|event| match event {
        TraceEvent::Hop(hop) => Some(hop.clone()),
        _ => None,
    });
    hops.collect()
}

/// Who answered at each hop.
pub(crate) fn senders(events: &[TraceEvent]) -> Vec<BTreeSet<IpAddr>> {
    let hops = hops(events);
    let senders = hops.iter().map(|hop| {
        let answers = hop.probes.iter().filter_map(|probe| probe.answer);
        answers.map(|answer| answer.from).collect()
    });
    senders.collect()
}

fn end(events: &[TraceEvent]) -> (bool, Vec<TracePath>) {
    match events.last() {
        Some(TraceEvent::End { reached, paths }) => (*reached, paths.clone()),
        other => panic!("{other:?}"),
    }
}

/// The routers of a chain up to this distance.
fn way(family: Family, distance: u8) -> Vec<BTreeSet<IpAddr>> {
    let hops = (1..=distance).map(|hop| BTreeSet::from([Chain::hop(family, hop)]));
    hops.collect()
}

#[test]
fn every_method_finds_every_router() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 6]);
    for family in FAMILIES {
        for method in METHODS {
            let events = chain.client().trace(chain.server(family), &options(method));
            let what = format!("{family:?} {method:?}: {events:?}");
            assert_eq!(senders(&events), way(family, 6), "{what}");
            assert!(end(&events).0, "{what}");
            assert!(hops(&events).iter().all(|hop| hop.probes.len() == 3));
        }
    }
}

#[test]
fn a_long_way_takes_longer_from_hop_to_hop() {
    if !rubelet_needs::root() {
        return;
    }
    let delay = Duration::from_millis(3);
    let laboratory = DelayedChain::new(delay);
    let (client, server) = (
        laboratory.chain.client(),
        laboratory.chain.server(Family::V4),
    );
    let events = client.trace(server, &options(TraceMethod::Icmp));
    assert_eq!(senders(&events), way(Family::V4, HOPS));
    for hop in hops(&events) {
        for probe in &hop.probes {
            let rtt = probe.answer.unwrap().rtt;
            assert!(rtt >= delay * u32::from(hop.ttl), "{hop:?}");
        }
    }
}

#[test]
fn an_open_port_ends_a_trace_too() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 2]);
    let server = chain.server(Family::V4);
    let (tcp, _udp) = chain.nodes[2].inside(|| {
        (
            TcpListener::bind((server, 8080)).unwrap(),
            UdpSocket::bind((server, 8080)).unwrap(),
        )
    });
    let port = TraceOptions {
        port: 8080,
        ..options(TraceMethod::Tcp)
    };
    let events = chain.client().trace(server, &port);
    assert_eq!(senders(&events), way(Family::V4, 2));
    assert!(end(&events).0);
    // They were reset, and wait for nobody.
    drop(tcp);
    // A service that does not answer is no answer.
    let silent = TraceOptions {
        method: TraceMethod::Udp,
        max: 3,
        wait: Duration::from_millis(500),
        ..port
    };
    let events = chain.client().trace(server, &silent);
    assert!(!end(&events).0, "{events:?}");
    assert_eq!(
        senders(&events)[0],
        BTreeSet::from([Chain::hop(Family::V4, 1)])
    );
}

#[test]
fn unprivileged_sockets_are_enough() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 3]);
    // The descriptors tell which kind of socket was opened.
    struct NoRaw<T>(T);
    impl<T: rubelet_netprobe::sockets::OpenSocket> rubelet_netprobe::sockets::OpenSocket for NoRaw<T> {
        fn open(
            &self,
            kind: rubelet_netprobe::sockets::SocketKind,
        ) -> std::io::Result<std::os::fd::OwnedFd> {
            assert!(!matches!(
                kind,
                rubelet_netprobe::sockets::SocketKind::EchoRaw(_)
            ));
            self.0.open(kind)
        }
    }
    for method in METHODS {
        let mut events = Vec::new();
        let (_running, stop) = rubelet_netprobe::wait::stop_pair().unwrap();
        let target = rubelet_netprobe::trace::TraceTarget {
            name: "server".to_owned(),
            address: (chain.server(Family::V4), 0).into(),
        };
        let mut report = |event| {
            events.push(event);
            std::ops::ControlFlow::Continue(())
        };
        let sockets = NoRaw(chain.client().sockets());
        let stop = std::os::fd::AsFd::as_fd(&stop);
        rubelet_netprobe::trace::trace(&target, &options(method), &sockets, stop, &mut report)
            .unwrap();
        assert_eq!(senders(&events), way(Family::V4, 3), "{method:?}");
    }
}

#[test]
fn filters_on_the_way_are_seen() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 4]);
    // A router that says nothing, and behind it one that lets nothing through.
    chain.nodes[1].filter(
        "output",
        &[
            "icmp type time-exceeded drop",
            "icmpv6 type time-exceeded drop",
        ],
    );
    chain.nodes[2].filter("forward", &["reject with icmpx type admin-prohibited"]);
    for family in FAMILIES {
        let events = chain
            .client()
            .trace(chain.server(family), &options(TraceMethod::Udp));
        let found = hops(&events);
        assert_eq!(found.len(), 3, "{events:?}");
        assert!(found[0].probes.iter().all(|probe| probe.answer.is_none()));
        assert_eq!(senders(&events)[1], BTreeSet::from([Chain::hop(family, 2)]));
        // The TTL is still enough at the second router, which rejects what would go on.
        let answer = found[2].probes[0].answer.unwrap();
        assert_eq!(answer.from, Chain::hop(family, 2));
        assert_eq!(answer.icmp.unwrap().mark(), "!X");
        assert!(!end(&events).0);
    }
}

#[test]
fn the_mtu_of_each_link_is_found() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500, 1500, 1400, 1500, 1300]);
    for family in FAMILIES {
        for method in [TraceMethod::Udp, TraceMethod::Icmp] {
            let mtu = TraceOptions {
                mtu: true,
                ..options(method)
            };
            let events = chain.client().trace(chain.server(family), &mtu);
            let mtus: Vec<_> = hops(&events).iter().map(|hop| hop.mtu).collect();
            let what = format!("{family:?} {method:?}: {events:?}");
            assert_eq!(mtus[1..], [None, Some(1400), None, Some(1300)], "{what}");
            assert_eq!(senders(&events), way(family, 5), "{what}");
        }
    }
}

#[test]
fn a_repeated_trace_reports_a_table() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 3]);
    for method in METHODS {
        let rounds = TraceOptions {
            rounds: Some(4),
            interval: Duration::from_millis(10),
            ..options(method)
        };
        let events = chain.client().trace(chain.server(Family::V6), &rounds);
        let tables: Vec<&Vec<HopSummary>> = events
            .iter()
            .filter_map(|event| match event {
                TraceEvent::Round { hops, .. } => Some(hops),
                _ => None,
            })
            .collect();
        assert_eq!(tables.len(), 4, "{method:?}");
        let last = tables[3];
        assert_eq!(last.len(), 3, "{method:?}: {last:?}");
        for (distance, hop) in (1..).zip(last) {
            assert_eq!(hop.addresses, [Chain::hop(Family::V6, distance)]);
            assert_eq!(
                (hop.summary.sent, hop.summary.received),
                (4, 4),
                "{method:?} {distance}: {events:?}"
            );
        }
        assert!(end(&events).0);
    }
}

/// A router that balances load over two others, which lead to one server.
struct Diamond {
    client: Node,
    _others: [Node; 4],
}

impl Diamond {
    fn new() -> Self {
        let [client, first, upper, lower, server] = [(); 5].map(|()| Node::new());
        for (net, (left, right), names) in [
            (1, (&client, &first), ["rbt-1", "rbt-1"]),
            (2, (&first, &upper), ["rbt-2", "rbt-2"]),
            (3, (&first, &lower), ["rbt-3", "rbt-3"]),
            (4, (&upper, &server), ["rbt-4", "rbt-4"]),
            (5, (&lower, &server), ["rbt-5", "rbt-5"]),
        ] {
            let end = |node, name, host| End {
                node,
                name,
                mac: [2, 0, 0, 0, net, host],
                addresses: both(net, host),
            };
            link(&end(left, names[0], 1), &end(right, names[1], 2), MTU);
        }
        server.command("ip", "addr add 10.66.99.1/32 dev lo");
        client.command("ip", "route add default via 10.66.1.2");
        first.command(
            "ip",
            "route add 10.66.99.1/32 nexthop via 10.66.2.2 nexthop via 10.66.3.2",
        );
        upper.command("ip", "route add 10.66.99.1/32 via 10.66.4.2");
        lower.command("ip", "route add 10.66.99.1/32 via 10.66.5.2");
        upper.command("ip", "route add default via 10.66.2.1");
        lower.command("ip", "route add default via 10.66.3.1");
        server.command("ip", "route add default via 10.66.4.1");
        Self {
            client,
            _others: [first, upper, lower, server],
        }
    }
}

#[test]
fn flows_show_both_ways_and_one_flow_keeps_to_its_own() {
    if !rubelet_needs::root() {
        return;
    }
    let diamond = Diamond::new();
    let target = "10.66.99.1".parse().unwrap();
    let ways = [2, 3].map(|net| address(Family::V4, net, 2));
    let many = TraceOptions {
        flows: 16,
        queries: 1,
        ..TraceOptions::default()
    };
    // With 16 flows, one in 32,768 traces sees one way only.
    let mut found = BTreeSet::new();
    for _ in 0..10 {
        let events = diamond.client.trace(target, &many);
        let (reached, paths) = end(&events);
        assert!(reached, "{events:?}");
        found = senders(&events)[1].clone();
        assert_eq!(found.len(), paths.len());
        if found.len() == 2 {
            let flows: usize = paths.iter().map(|path| path.flows.len()).sum();
            assert_eq!(flows, 16);
            break;
        }
    }
    assert_eq!(found, BTreeSet::from(ways));
    for _ in 0..10 {
        let one = TraceOptions {
            queries: 10,
            ..TraceOptions::default()
        };
        let events = diamond.client.trace(target, &one);
        assert_eq!(senders(&events)[1].len(), 1, "{events:?}");
    }
}
