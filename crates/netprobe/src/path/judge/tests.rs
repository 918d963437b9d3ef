//! Where packets stop, by what passed the interfaces.

use super::{super::super::check::CheckOutcome, *};

/// Interfaces with what passed them: requests and replies.
fn points(counts: &[(u64, u64)]) -> Vec<PointCount> {
    let names = ["eth0", "veth1", "cni0", "veth2"];
    names
        .iter()
        .zip(counts)
        .map(|(name, (requests, replies))| PointCount {
            name: (*name).to_owned(),
            requests: *requests,
            replies: *replies,
        })
        .collect()
}

#[test]
fn packets_stop_behind_the_last_interface_that_saw_them() {
    for (counts, last_hop, detail) in [
        (&[][..], LastHop::Target, "no reply arrives"),
        (
            &[(0, 0), (0, 0)],
            LastHop::Target,
            "no request leaves by eth0",
        ),
        (
            &[(3, 0), (0, 0), (0, 0)],
            LastHop::Target,
            "requests stop between eth0 and veth1",
        ),
        (
            &[(3, 0), (3, 0), (0, 0)],
            LastHop::Target,
            "requests stop between veth1 and cni0",
        ),
        (
            &[(3, 0), (3, 0)],
            LastHop::Target,
            "requests arrive by veth1, and the target does not answer",
        ),
        (
            &[(3, 0), (3, 0)],
            LastHop::Outside,
            "requests leave this machine by veth1, and no reply comes back",
        ),
        (
            &[(3, 0), (3, 0), (3, 3)],
            LastHop::Target,
            "replies stop between cni0 and veth1",
        ),
        (
            &[(3, 1), (3, 1)],
            LastHop::Target,
            "replies come as far as eth0, and the pod does not take them",
        ),
        (
            &[(3, 0), (3, 0), (3, 0)],
            LastHop::NoRoute,
            "requests arrive by cni0, and this machine has no route to the target",
        ),
    ] {
        let seen = PathSeen {
            points: points(counts),
            last_hop,
            ..PathSeen::default()
        };
        let found = judge(&seen);
        assert_eq!(
            (found.outcome, &*found.detail),
            (CheckOutcome::Wrong, detail)
        );
        assert!(found.advice.is_some());
    }
    let answered = PathSeen {
        points: points(&[(3, 1), (3, 2)]),
        answers: 1,
        ..PathSeen::default()
    };
    assert_eq!(judge(&answered).outcome, CheckOutcome::Ok);
}

#[test]
fn a_rule_that_drops_is_the_cause_and_then_an_icmp_error() {
    let rule = |rule, comment: Option<&str>, packets| DroppedBy {
        chain: "ip filter FORWARD".to_owned(),
        rule,
        comment: comment.map(str::to_owned),
        packets,
    };
    let advice = |dropped: Vec<DroppedBy>, errors: Vec<String>| {
        let seen = PathSeen {
            points: points(&[(3, 0), (0, 0)]),
            dropped,
            errors,
            ..PathSeen::default()
        };
        judge(&seen).advice.unwrap()
    };
    let error = || vec!["10.0.0.1 says: Packet filtered".to_owned()];
    assert_eq!(
        advice(vec![rule(Some(2), Some("no pods"), Some(7))], error()),
        "Rule 2 (no pods) of the nftables chain ip filter FORWARD drops them; it has counted 7 packets"
    );
    assert_eq!(
        advice(vec![rule(Some(1), None, None)], Vec::new()),
        "Rule 1 of the nftables chain ip filter FORWARD drops them"
    );
    assert_eq!(
        advice(vec![rule(None, None, None)], Vec::new()),
        "The policy of the nftables chain ip filter FORWARD drops them: add a rule that accepts them"
    );
    assert_eq!(
        advice(Vec::new(), error()),
        "10.0.0.1 says: Packet filtered"
    );
}

#[test]
fn what_cannot_be_followed_is_named_where_packets_vanish_on_the_way() {
    let vanished = PathSeen {
        points: points(&[(3, 0), (0, 0)]),
        programs: vec![
            PacketProgram::Bpf("veth1".to_owned()),
            PacketProgram::LegacyTables(vec!["filter".to_owned(), "nat".to_owned()]),
        ],
        ..PathSeen::default()
    };
    let advice = judge(&vanished).advice.unwrap();
    assert_eq!(
        advice,
        "No rule of nftables dropped them, but this machine has BPF programs of veth1 (`bpftool net show dev veth1`), and \
         iptables-legacy, which has the tables filter, nat (`iptables-legacy-save -c`), which cannot be followed: look there"
    );
    // What arrives was not dropped on the way.
    let silent = PathSeen {
        points: points(&[(3, 0), (3, 0)]),
        ..vanished
    };
    let advice = judge(&silent).advice.unwrap();
    assert!(!advice.contains("veth1"), "{advice}");
}
