//! Tests of `ranges`.

use super::*;

fn link(index: u32, name: &str, kind: &str) -> Link {
    Link {
        index,
        name: name.to_owned(),
        kind: kind.to_owned(),
        peer: None,
        master: None,
        port: None,
        mac: Vec::new(),
        mtu: 1500,
        up: true,
        running: true,
        group: 0,
        counters: rubelet_host::netlink::Counters::default(),
    }
}

fn route(destination: &str, gateway: Option<&str>, link: u32) -> Route {
    let range: Cidr = destination.parse().unwrap();
    Route {
        destination: range.network(),
        prefix: range.prefix(),
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        link,
        source: None,
    }
}

#[test]
fn routes_that_take_the_range_are_named() {
    let range: Cidr = "10.1.0.0/16".parse().unwrap();
    let links = [
        link(2, "eth0", ""),
        link(3, "rubelet0", "bridge"),
        link(4, "vx", "veth"),
    ];
    let clashes = |routes: &[Route]| clash(range, routes, &links, Some(3));
    let text = clashes(&[route("10.0.0.0/8", None, 2)])
        .unwrap()
        .to_string();
    assert!(
        text.contains("10.0.0.0/8") && text.contains("eth0"),
        "{text}"
    );
    clashes(&[route("10.1.7.0/24", Some("10.9.0.1"), 2)]).unwrap();
    clashes(&[route("10.1.0.0/16", Some("10.9.0.1"), 2)]).unwrap();
    let harmless = [
        route("0.0.0.0/0", Some("192.0.2.1"), 2),
        route("10.0.0.0/8", Some("192.0.2.1"), 2),
        route("192.0.2.0/24", None, 2),
        route("10.1.0.0/16", None, 3),
        route("10.1.0.9/32", None, 4),
        route("fd00::/8", None, 2),
    ];
    assert_eq!(clashes(&harmless), None);
}

#[test]
fn the_chosen_range_is_free_and_holds_a_thousand_pods() {
    let first = choose(&[]).unwrap();
    assert!(first.capacity() > 1000);
    let second = choose(&[route(&first.to_string(), Some("192.0.2.1"), 2)]).unwrap();
    assert_ne!(first, second);
    choose(&[
        route("10.0.0.0/8", None, 2),
        route("172.16.0.0/12", None, 2),
    ])
    .unwrap_err();
}

#[test]
fn ranges_that_cannot_work_are_refused() {
    let ranges =
        |texts: &[&str]| -> Vec<Cidr> { texts.iter().map(|text| text.parse().unwrap()).collect() };
    check(&ranges(&["10.1.0.0/16", "fd00::/64"])).unwrap();
    for wrong in [
        &["10.1.0.0/31"][..],
        &["127.0.0.0/8"],
        &["224.0.0.0/8"],
        &["10.1.0.0/16", "10.2.0.0/16"],
        &["fd00::/128"],
    ] {
        check(&ranges(wrong)).unwrap_err();
    }
}
