//! What results mean.

use super::{super::finding::CheckOutcome, *};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn interface(name: &str, addresses: &[&str]) -> InterfaceState {
    InterfaceState {
        name: name.to_owned(),
        up: true,
        mtu: 1450,
        addresses: addresses.iter().map(|text| ip(text)).collect(),
    }
}

fn inputs(addresses: &[&str], interfaces: Vec<InterfaceState>) -> CheckInputs {
    let unknown = || "unknown".into();
    CheckInputs {
        addresses: addresses.iter().map(|text| ip(text)).collect(),
        interfaces,
        routes: Vec::new(),
        nameservers: Vec::new(),
        name: Err(unknown()),
        service: Err(unknown()),
        api_server: Err(unknown()),
        outside: Err(unknown()),
    }
}

fn target() -> CheckTarget {
    CheckTarget {
        name: "gw".to_owned(),
        address: "192.0.2.1:443".parse().unwrap(),
    }
}

#[test]
fn the_interfaces_have_what_the_status_shows() {
    let eth0 = || interface("eth0", &["10.1.0.2", "fd00::2"]);
    let down = InterfaceState {
        up: false,
        ..eth0()
    };
    for (addresses, interfaces, outcome, detail) in [
        (
            &["10.1.0.2", "fd00::2"][..],
            vec![eth0()],
            CheckOutcome::Ok,
            "eth0 has 10.1.0.2, fd00::2, mtu 1450",
        ),
        (
            &["10.1.0.2"],
            vec![interface("sit0", &[]), eth0()],
            CheckOutcome::Ok,
            "sit0 has no address, mtu 1450; eth0 has 10.1.0.2, fd00::2, mtu 1450",
        ),
        (
            &["10.1.0.3"],
            vec![interface("eth0", &["10.1.0.2"])],
            CheckOutcome::Wrong,
            "no interface has 10.1.0.3, which the pod's status shows: eth0 has 10.1.0.2, mtu 1450",
        ),
        (
            &["10.1.0.2"],
            vec![down],
            CheckOutcome::Wrong,
            "eth0 is down: eth0 has 10.1.0.2, fd00::2, mtu 1450",
        ),
        (
            &["10.1.0.2"],
            Vec::new(),
            CheckOutcome::Wrong,
            "there is no interface but loopback",
        ),
        (
            &[],
            vec![interface("eth0", &["10.1.0.2"])],
            CheckOutcome::Skipped,
            "the pod's status shows no address yet: eth0 has 10.1.0.2, mtu 1450",
        ),
    ] {
        let found = super::addresses(&inputs(addresses, interfaces));
        assert_eq!((found.outcome, &*found.detail), (outcome, detail));
        assert_eq!(found.advice.is_some(), outcome == CheckOutcome::Wrong);
    }
}

#[test]
fn a_gateway_that_is_silent_may_be_one_of_arp_only() {
    let route = |gateway: Option<&str>| DefaultRoute {
        gateway: gateway.map(ip),
        interface: "eth0".to_owned(),
    };
    let by = route(Some("10.1.0.1"));
    let rtt = Duration::from_micros(52);
    let error = || PingCheckResult::Error("Destination Host Unreachable".to_owned());
    for (route, outcome) in [
        (None, CheckOutcome::Wrong),
        (Some((&route(None), None)), CheckOutcome::Ok),
        (
            Some((&by, Some(PingCheckResult::Answer(rtt)))),
            CheckOutcome::Ok,
        ),
        (Some((&by, Some(error()))), CheckOutcome::Wrong),
        (
            Some((&by, Some(PingCheckResult::Silence))),
            CheckOutcome::Skipped,
        ),
    ] {
        let found = gateway(route.clone());
        assert_eq!(found.outcome, outcome, "{route:?}: {found:?}");
    }
}

#[test]
fn one_dead_nameserver_is_wrong_and_any_answer_is_one() {
    let (one, two) = (ip("10.96.0.10"), ip("192.0.2.53"));
    let code = || DnsAnswer::Code("NXDOMAIN".to_owned());
    for (answers, outcome, detail) in [
        (vec![], CheckOutcome::Wrong, "the pod has no nameserver"),
        (
            vec![(one, code()), (two, DnsAnswer::Addresses(vec![one]))],
            CheckOutcome::Ok,
            "10.96.0.10, 192.0.2.53 answers",
        ),
        (
            vec![(one, DnsAnswer::Silence)],
            CheckOutcome::Wrong,
            "10.96.0.10 does not answer",
        ),
        (
            vec![(one, DnsAnswer::Silence), (two, code())],
            CheckOutcome::Wrong,
            "10.96.0.10 does not answer; 192.0.2.53 does: each lookup may wait for the other first",
        ),
    ] {
        let found = nameservers(&answers);
        assert_eq!((found.outcome, &*found.detail), (outcome, detail));
    }
}

#[test]
fn long_packets_that_vanish_are_wrong_and_short_paths_are_not() {
    let found = |mtu, black_hole| Some(PathMtu { mtu, black_hole });
    for (result, outcome, detail) in [
        (
            None,
            CheckOutcome::Skipped,
            "gw (192.0.2.1) does not answer",
        ),
        (
            found(1450, false),
            CheckOutcome::Ok,
            "1450 bytes arrive at gw (192.0.2.1)",
        ),
        (
            found(1400, false),
            CheckOutcome::Ok,
            "1400 bytes arrive at gw (192.0.2.1); the interface takes 1450, and routers say so",
        ),
        (
            found(1400, true),
            CheckOutcome::Wrong,
            "packets of more than 1400 bytes to gw (192.0.2.1) vanish, and no router says so",
        ),
    ] {
        let found = mtu(&target(), Some(1450), result);
        assert_eq!((found.outcome, &*found.detail), (outcome, detail));
    }
}
