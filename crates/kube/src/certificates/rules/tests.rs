//! Tests of `rules`.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn leaf() -> Leaf {
    let wanted = wanted();
    Leaf {
        common_name: wanted.common_name,
        organizations: wanted.organizations,
        dns_names: wanted.dns_names,
        addresses: wanted.addresses,
        not_before: at(0),
        not_after: at(1000),
    }
}

fn wanted() -> CertificateTemplate {
    let names = ServingNames::of_node([("Hostname", "a"), ("InternalIP", "10.0.0.1")]);
    CertificateTemplate::node("a").with(&names)
}

#[test]
fn a_certificate_is_renewed_between_seventy_and_ninety_percent_of_its_life() {
    for (jitter, second) in [(0.0, 700), (0.5, 800), (1.0, 900), (7.0, 900)] {
        assert_eq!(rotation(&leaf(), jitter), at(second), "{jitter}");
        assert_eq!(
            due(Some(&leaf()), &wanted(), jitter, at(second - 1)),
            NextRenewal::At(at(second))
        );
        assert_eq!(
            due(Some(&leaf()), &wanted(), jitter, at(second)),
            NextRenewal::Now(RenewalReason::Age)
        );
    }
}

#[test]
fn a_certificate_that_is_useless_at_once_is_reported_with_the_reason() {
    for why in [RenewalReason::Age, RenewalReason::Expired(at(9))] {
        let line = issued_unusable(&why, at(9), at(10));
        let clocks = "compare the clocks of the node and of the cluster";
        assert_eq!(
            line,
            format!(
                "the certificate that was just issued is valid until {}, and this node's clock shows {}: {clocks}",
                at(9),
                at(10)
            )
        );
    }
    assert_eq!(
        issued_unusable(&RenewalReason::Lacks("the name a".to_owned()), at(9), at(1)),
        "the issued certificate does not match the request: the certificate lacks the name a"
    );
    let lives = |seconds| {
        longest_pause(&Leaf {
            not_after: at(seconds),
            ..leaf()
        })
        .as_secs()
    };
    assert_eq!((lives(1000), lives(30), lives(-1)), (500, 60, 60));
}

#[test]
fn a_slow_clock_does_not_delay_the_renewal() {
    let minute = |count: i64| at(60 * count);
    let mut leaf = leaf();
    // An hour of life from the cluster's minute 20 on.
    (leaf.not_before, leaf.not_after) = (minute(15), minute(80));
    for (own_clock, latest) in [(20, 80), (30, 90), (10, 70), (0, 60), (15, 75)] {
        for jitter in [0.0, 1.0] {
            let by_arrival = rotation_by_arrival(&leaf, jitter, minute(own_clock));
            assert!(by_arrival <= rotation(&leaf, jitter), "{own_clock}");
            assert!(
                by_arrival > minute(own_clock) && by_arrival < minute(latest),
                "{own_clock}"
            );
            let in_time = own_clock >= 20;
            assert_eq!(
                by_arrival == rotation(&leaf, jitter),
                in_time,
                "{own_clock}"
            );
        }
    }
    assert!(rotation_by_arrival(&leaf, 0.0, Timestamp::MIN) < leaf.not_before);
}

#[test]
fn a_life_of_minutes_that_is_not_dated_back_is_not_over_when_it_begins() {
    for life in 1..15 {
        let mut leaf = leaf();
        (leaf.not_before, leaf.not_after) = (at(0), at(60 * life));
        for jitter in [0.0, 1.0] {
            let renewed = rotation_by_arrival(&leaf, jitter, at(0));
            assert!(
                renewed >= at(10 * life) && renewed < leaf.not_after,
                "{life}"
            );
        }
    }
}

#[test]
fn a_certificate_that_is_not_good_enough_is_replaced_at_once_and_the_reason_is_said() {
    let with = |change: &dyn Fn(&mut Leaf)| {
        let mut leaf = leaf();
        change(&mut leaf);
        match due(Some(&leaf), &wanted(), 0.0, at(10)) {
            NextRenewal::Now(why) => why.to_string(),
            NextRenewal::At(_) => "good".to_owned(),
        }
    };
    assert_eq!(
        due(None, &wanted(), 0.0, at(0)),
        NextRenewal::Now(RenewalReason::Missing)
    );
    assert_eq!(with(&|_| {}), "good");
    assert_eq!(
        with(&|leaf| leaf.not_after = at(9)),
        format!("the certificate expired at {}", at(9))
    );
    assert_eq!(
        with(&|leaf| leaf.common_name = "system:node:b".to_owned()),
        "the certificate was issued to \"system:node:b\""
    );
    assert_eq!(
        with(&|leaf| leaf.organizations.clear()),
        "the certificate lacks the group system:nodes"
    );
    assert_eq!(
        with(&|leaf| leaf.dns_names.clear()),
        "the certificate lacks the name a"
    );
    assert_eq!(
        with(&|leaf| leaf.addresses.clear()),
        "the certificate lacks the address 10.0.0.1"
    );
    let more = |leaf: &mut Leaf| {
        leaf.dns_names.insert("more".to_owned());
        leaf.organizations.insert("others".to_owned());
    };
    assert_eq!(with(&more), "good", "more than wanted is no reason");
}

#[test]
fn names_and_addresses_come_from_the_node() {
    let names = ServingNames::of_node([
        ("InternalIP", "10.0.0.1"),
        ("ExternalIP", "fd00::1"),
        ("InternalIP", "not an address"),
        ("Hostname", "node"),
        ("Hostname", "10.0.0.2"),
        ("InternalDNS", "node.internal"),
        ("ExternalDNS", ""),
    ]);
    let addresses: Vec<String> = names.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.1", "10.0.0.2", "fd00::1"]);
    let dns: Vec<&str> = names.dns_names.iter().map(String::as_str).collect();
    assert_eq!(dns, ["node", "node.internal"]);
    let only = ServingNames::of_node([("Hostname", "node")]);
    assert!(!only.suffice(false) && only.suffice(true) && names.suffice(false));
}

#[test]
fn the_jitter_follows_from_the_certificate() {
    assert_eq!(jitter(b"a").to_bits(), jitter(b"a").to_bits());
    assert!(jitter(b"a") != jitter(b"b"));
    assert!((0.0..=1.0).contains(&jitter(b"c")));
}

#[test]
fn the_time_to_live_is_whole_negative_or_infinite() {
    assert_eq!(ttl_seconds(Some(at(10)), at(0)), 10.0);
    assert_eq!(ttl_seconds(Some(at(0)), at(10)), -10.0);
    assert_eq!(ttl_seconds(None, at(0)), f64::INFINITY);
}
