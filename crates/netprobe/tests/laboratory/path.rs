//! Where packets stop between two hosts, with a router that stands for the node.

use std::{net::SocketAddr, ops::ControlFlow, os::fd::AsFd as _};

use rubelet_host::packet_tap::{Direction, PacketTap};
use rubelet_netprobe::{
    check::{CheckOutcome, Finding},
    packet::Family,
    path::{LastHop, PathEvent, PathInputs, PathPoint, follow, tracer::Tracer},
    wait::stop_pair,
};

use crate::world::{self, Chain, Node, index};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn point(node: &Node, interface: &str, name: &str, requests: Direction) -> PathPoint {
    PathPoint {
        name: name.to_owned(),
        tap: node.inside(|| PacketTap::open(index(interface)).unwrap()),
        requests,
    }
}

/// A pod, the node and a target, and what passed the interfaces between them.
fn followed(chain: &Chain, family: Family) -> (Vec<(u64, u64)>, Finding) {
    let [pod, node, target] = chain.nodes.as_slice() else {
        panic!("three nodes")
    };
    let address = chain.server(family);
    let source = world::address(family, 0, 1);
    let inputs = PathInputs {
        target: SocketAddr::new(address, 0),
        points: vec![
            point(pod, "rbt-right", "eth0 (pod)", Direction::Out),
            point(node, "rbt-left", "veth1 (node)", Direction::In),
            point(node, "rbt-right", "veth2 (node)", Direction::Out),
            point(target, "rbt-left", "eth0 (target)", Direction::In),
        ],
        last_hop: LastHop::Target,
        tracer: node.inside(|| Tracer::start(source, address).ok()),
        programs: Vec::new(),
    };
    let (_running, stop) = stop_pair().unwrap();
    let (mut counts, mut result) = (Vec::new(), None);
    let mut report = |event| {
        match event {
            PathEvent::Point {
                requests, replies, ..
            } => counts.push((requests, replies)),
            PathEvent::Result { finding } => result = Some(finding),
        }
        ControlFlow::Continue(())
    };
    follow(inputs, &pod.sockets(), stop.as_fd(), &mut report).unwrap();
    (counts, result.unwrap())
}

#[test]
fn packets_are_seen_at_each_interface_and_where_they_stop() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500, 1500]);
    for family in FAMILIES {
        let (counts, finding) = followed(&chain, family);
        assert_eq!(counts, [(3, 3); 4], "{family:?} {finding:?}");
        assert_eq!(finding.outcome, CheckOutcome::Ok);
    }

    // A rule of the node drops requests.
    let node = &chain.nodes[1];
    node.filter(
        "forward",
        &["oifname rbt-right counter drop comment \"no pods here\""],
    );
    for family in FAMILIES {
        let (counts, finding) = followed(&chain, family);
        assert_eq!(counts, [(3, 0), (3, 0), (0, 0), (0, 0)], "{family:?}");
        assert_eq!(
            finding.detail,
            "requests stop between veth1 (node) and veth2 (node)"
        );
        let advice = finding.advice.unwrap();
        assert!(
            advice.starts_with(
                "Rule 1 (no pods here) of the nftables chain inet rbt forward drops them; it has counted "
            ),
            "{family:?} {advice}"
        );
    }
    // Nothing of the tracing stays.
    let tables = node.inside(|| {
        let listed = std::process::Command::new("nft")
            .args(["list", "tables"])
            .output();
        String::from_utf8(listed.unwrap().stdout).unwrap()
    });
    assert_eq!(tables, "table inet rbt\n");
}

#[test]
fn the_way_back_and_a_target_that_is_silent_are_told_apart() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500, 1500]);
    chain.nodes[1].filter("forward", &["oifname rbt-left drop"]);
    let (counts, finding) = followed(&chain, Family::V4);
    assert_eq!(counts, [(3, 0), (3, 0), (3, 3), (3, 3)]);
    assert_eq!(
        finding.detail,
        "replies stop between veth2 (node) and veth1 (node)"
    );

    let chain = Chain::new(&[1500, 1500]);
    chain.nodes[2].filter("input", &["drop"]);
    let (counts, finding) = followed(&chain, Family::V4);
    assert_eq!(counts, [(3, 0); 4]);
    assert_eq!(
        finding.detail,
        "requests arrive by eth0 (target), and the target does not answer"
    );
    let advice = finding.advice.unwrap();
    assert!(
        advice.starts_with("No rule of nftables dropped them"),
        "{advice}"
    );
}
