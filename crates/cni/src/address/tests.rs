//! Tests of `address`.

use super::*;

fn cidr(text: &str) -> Cidr {
    text.parse().unwrap()
}

#[test]
fn ranges_are_read_and_cut_to_their_prefix() {
    assert_eq!(cidr("10.1.2.3/16").to_string(), "10.1.0.0/16");
    assert_eq!(cidr("fd00:1::7/64").to_string(), "fd00:1::/64");
    assert_eq!(cidr("0.0.0.0/0").to_string(), "0.0.0.0/0");
    assert_eq!(cidr("::/0").to_string(), "::/0");
    for wrong in [
        "",
        "10.1.0.0",
        "10.1.0.0/33",
        "fd00::/129",
        "a/8",
        "10.0.0.0/x",
    ] {
        assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
    }
}

#[test]
fn pod_addresses_leave_out_the_gateway_and_the_broadcast_address() {
    let small = cidr("192.0.2.0/29");
    assert_eq!(small.capacity(), 5);
    assert_eq!(small.gateway().to_string(), "192.0.2.1");
    assert_eq!(small.pod(0).to_string(), "192.0.2.2");
    assert_eq!(small.pod(4).to_string(), "192.0.2.6");
    assert_eq!(small.number("192.0.2.6".parse().unwrap()), Some(4));
    for outside in ["192.0.2.0", "192.0.2.1", "192.0.2.7", "192.0.2.9", "::1"] {
        assert_eq!(small.number(outside.parse().unwrap()), None, "{outside}");
    }
    assert!(cidr("10.0.0.0/16").capacity() > 60_000);
    assert!(cidr("fd00::/64").capacity() > 60_000);
    assert_eq!(cidr("10.0.0.0/32").capacity(), 0);
    assert_eq!(cidr("10.0.0.0/31").capacity(), 0);
}

#[test]
fn overlaps_are_seen_both_ways() {
    assert!(cidr("10.0.0.0/8").overlaps(&cidr("10.9.0.0/16")));
    assert!(cidr("10.9.0.0/16").overlaps(&cidr("10.0.0.0/8")));
    assert!(!cidr("10.8.0.0/16").overlaps(&cidr("10.9.0.0/16")));
    assert!(!cidr("0.0.0.0/0").overlaps(&cidr("::/0")));
}
