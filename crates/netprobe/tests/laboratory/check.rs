//! The questions of a check, in a network where all is well, and where one thing after the other is
//! wrong.

use std::{
    net::{IpAddr, SocketAddr, TcpListener, UdpSocket},
    ops::ControlFlow,
    os::fd::AsFd as _,
    thread,
};

use rubelet_netprobe::{
    check::{
        CheckEvent, CheckInputs, CheckKind, CheckOutcome, CheckTarget, DefaultRoute, Finding,
        InterfaceState, check,
    },
    packet::Family,
    wait::stop_pair,
};
use simple_dns::{CLASS, Packet, RCODE, ResourceRecord, rdata::RData};

use crate::world::Chain;

const NAME: &str = "kubernetes.default.svc.cluster.local";

/// A pod, a node and a host outside, which is the cluster's DNS and API server too.
fn chain() -> Chain {
    let chain = Chain::new(&[1500, 1400, 1500]);
    let server = &chain.nodes[3];
    let dns = server.inside(|| UdpSocket::bind("0.0.0.0:53").unwrap());
    thread::spawn(move || serve_names(&dns));
    let port = server.inside(|| TcpListener::bind("0.0.0.0:6443").unwrap());
    thread::spawn(move || while port.accept().is_ok() {});
    chain
}

/// Knows one name. Lives as long as the tests.
fn serve_names(socket: &UdpSocket) {
    let mut buffer = [0; 512];
    while let Ok((length, client)) = socket.recv_from(&mut buffer) {
        let query = Packet::parse(&buffer[..length]).unwrap();
        let question = query.questions[0].clone();
        let mut answer = query.into_reply();
        match question.qname.to_string() == NAME {
            true => answer.answers.push(ResourceRecord::new(
                question.qname.clone(),
                CLASS::IN,
                5,
                RData::A(simple_dns::rdata::A {
                    address: u32::from(std::net::Ipv4Addr::new(10, 96, 0, 1)),
                }),
            )),
            false => *answer.rcode_mut() = RCODE::NameError,
        }
        // One from nobody comes first.
        let mut forged = Packet::new_reply(answer.id().wrapping_add(1));
        forged.questions.push(question);
        for packet in [forged, answer] {
            let bytes = packet.build_bytes_vec().unwrap();
            socket.send_to(&bytes, client).unwrap();
        }
    }
}

fn target(name: &str, address: IpAddr, port: u16) -> CheckTarget {
    CheckTarget {
        name: name.to_owned(),
        address: SocketAddr::new(address, port),
    }
}

fn inputs(chain: &Chain) -> CheckInputs {
    let server = chain.server(Family::V4);
    let own = "10.66.0.1".parse().unwrap();
    CheckInputs {
        addresses: vec![own],
        interfaces: vec![InterfaceState {
            name: "rbt-right".to_owned(),
            up: true,
            mtu: 1500,
            addresses: vec![own],
        }],
        routes: vec![DefaultRoute {
            gateway: Some(Chain::hop(Family::V4, 1)),
            interface: "rbt-right".to_owned(),
        }],
        nameservers: vec![server],
        name: Ok(NAME.to_owned()),
        service: Ok(target("kubernetes.default", server, 6443)),
        api_server: Ok(target("api", server, 6443)),
        outside: Ok(target("outside", server, 0)),
    }
}

fn findings(chain: &Chain, inputs: &CheckInputs) -> Vec<(CheckKind, Finding)> {
    let (_running, stop) = stop_pair().unwrap();
    let mut found = Vec::new();
    let mut report = |CheckEvent::Checked { check, finding }| {
        found.push((check, finding));
        ControlFlow::Continue(())
    };
    check(inputs, &chain.client().sockets(), stop.as_fd(), &mut report).unwrap();
    assert_eq!(found.len(), 8, "{found:?}");
    found
}

/// What is wrong, in order.
fn wrong(chain: &Chain, inputs: &CheckInputs) -> Vec<(CheckKind, String)> {
    let found = findings(chain, inputs).into_iter();
    found
        .filter(|(_, finding)| finding.outcome == CheckOutcome::Wrong)
        .map(|(check, finding)| (check, finding.detail))
        .collect()
}

#[test]
fn nothing_is_wrong_where_all_is_well() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = chain();
    let found = findings(&chain, &inputs(&chain));
    for (check, finding) in &found {
        assert_eq!(finding.outcome, CheckOutcome::Ok, "{check:?} {finding:?}");
        assert_eq!(finding.advice, None);
    }
    assert_eq!(found[3].1.detail, format!("{NAME} is 10.96.0.1"));
    assert_eq!(
        found[7].1.detail,
        "1400 bytes arrive at outside (10.66.2.2); the interface takes 1500, and routers say so"
    );
}

#[test]
fn each_thing_that_is_wrong_is_told() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = chain();
    let server = chain.server(Family::V4);
    let well = inputs(&chain);

    let mut unknown = well.clone();
    unknown.name = Ok("db.default.svc.cluster.local".to_owned());
    unknown.service = Ok(target("kubernetes.default", server, 6444));
    assert_eq!(
        wrong(&chain, &unknown),
        [
            (
                CheckKind::Name,
                "the nameserver answers NXDOMAIN for db.default.svc.cluster.local".to_owned()
            ),
            (
                CheckKind::Service,
                format!("kubernetes.default at {server}:6444: Connection refused")
            ),
        ]
    );

    // Nobody listens at the first nameserver.
    let mut dead = well.clone();
    dead.nameservers.insert(0, Chain::hop(Family::V4, 1));
    let found = wrong(&chain, &dead);
    assert_eq!(
        found,
        [(
            CheckKind::Dns,
            format!(
                "10.66.0.2 is not reached: Connection refused; {server} does: each lookup may wait for the other first"
            )
        )]
    );

    // Nobody has the gateway's address.
    let mut missing = well.clone();
    missing.routes[0].gateway = Some("10.66.0.77".parse().unwrap());
    let found = wrong(&chain, &missing);
    assert_eq!(found.len(), 1, "{found:?}");
    let (check, detail) = &found[0];
    assert_eq!(*check, CheckKind::Gateway);
    assert!(
        detail.starts_with("10.66.0.77 is not reached by rbt-right: "),
        "{detail}"
    );

    // Long packets vanish.
    chain.nodes[1].filter("output", &["icmp type destination-unreachable drop"]);
    let found = wrong(&chain, &well);
    assert_eq!(
        found,
        [(
            CheckKind::Mtu,
            "packets of more than 1400 bytes to outside (10.66.2.2) vanish, and no router says so"
                .to_owned()
        )]
    );

    // Nothing passes the node.
    chain.nodes[1].filter("forward", &["drop"]);
    let found = wrong(&chain, &well);
    let kinds: Vec<CheckKind> = found.iter().map(|(check, _)| *check).collect();
    let expected = [
        CheckKind::Dns,
        CheckKind::Service,
        CheckKind::ApiServer,
        CheckKind::Outside,
    ];
    assert_eq!(kinds, expected, "{found:?}");
}

#[test]
fn a_check_stops_when_it_is_told_to() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[1500]);
    let inputs = inputs(&chain);
    let (running, stop) = stop_pair().unwrap();
    drop(running);
    let mut found = Vec::new();
    let mut report = |CheckEvent::Checked { check, .. }| {
        found.push(check);
        ControlFlow::Continue(())
    };
    check(
        &inputs,
        &chain.client().sockets(),
        stop.as_fd(),
        &mut report,
    )
    .unwrap();
    assert_eq!(found, [CheckKind::Address]);
}
