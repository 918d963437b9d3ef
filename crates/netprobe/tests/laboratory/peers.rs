//! The programs of Debian on the same paths: iputils-ping, traceroute and mtr.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    process::{Command, Stdio},
    time::Duration,
};

use rubelet_netprobe::{
    packet::Family,
    ping::PingOptions,
    trace::{TraceMethod, TraceOptions},
};

use crate::{
    trace::senders,
    world::{Chain, MTU, Node},
};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// What a program prints inside of a node, whatever its exit code is; `None` if it is not installed.
fn printed(node: &Node, program: &str, words: &[&str]) -> Option<String> {
    let ran = node.inside(|| {
        Command::new(program)
            .args(words)
            .stdin(Stdio::null())
            .output()
            .ok()
    });
    if !rubelet_needs::have(ran.is_some(), program) {
        return None;
    }
    Some(String::from_utf8(ran?.stdout).unwrap())
}

/// The addresses in lines that begin with a number, in order.
fn addresses(text: &str) -> Vec<IpAddr> {
    let numbered = text.lines().filter(|line| {
        let first = line.trim_start().chars().next();
        first.is_some_and(|first| first.is_ascii_digit())
    });
    let address = |line: &str| line.split_whitespace().find_map(|word| word.parse().ok());
    numbered.filter_map(address).collect()
}

#[test]
fn traceroute_and_mtr_see_the_same_routers() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 5]);
    let client = chain.client();
    for family in FAMILIES {
        let server = chain.server(family);
        let text = server.to_string();
        let own = |method| {
            let options = TraceOptions {
                method,
                ..TraceOptions::default()
            };
            senders(&client.trace(server, &options))
        };
        let as_sets = |hops: Vec<IpAddr>| -> Vec<BTreeSet<IpAddr>> {
            hops.into_iter().map(|hop| BTreeSet::from([hop])).collect()
        };
        for (flag, method) in [
            ("-U", TraceMethod::Udp),
            ("-I", TraceMethod::Icmp),
            ("-T", TraceMethod::Tcp),
        ] {
            // A probe that is late on a busy machine is one that is not answered.
            let words = ["-n", "-q", "3", "-w", "30", "-m", "8", flag, &text];
            let Some(theirs) = printed(client, "traceroute", &words) else {
                return;
            };
            assert_eq!(own(method), as_sets(addresses(&theirs)), "{theirs}");
        }
        // It waits for the last answers in any case; one of four is enough.
        let words = ["-n", "-r", "-c", "4", "-i", "0.2", "-G", "3", &text];
        let Some(theirs) = printed(client, "mtr", &words) else {
            return;
        };
        assert_eq!(
            own(TraceMethod::Icmp),
            as_sets(addresses(&theirs)),
            "{theirs}"
        );
    }
}

#[test]
fn ping_counts_the_same_answers_and_errors() {
    if !rubelet_needs::root() {
        return;
    }
    let chain = Chain::new(&[MTU; 2]);
    let client = chain.client();
    let server = chain.server(Family::V4);
    let text = server.to_string();
    let own = || {
        let options = PingOptions {
            count: Some(5),
            interval: Duration::from_millis(20),
            timeout: Duration::from_secs(1),
            ..PingOptions::default()
        };
        let summary = client.ping(server, &options).summary;
        (summary.sent, summary.received, summary.errors)
    };
    let words = ["-n", "-c", "5", "-i", "0.02", "-W", "1", &text];
    let Some(theirs) = printed(client, "ping", &words) else {
        return;
    };
    assert!(theirs.contains("5 packets transmitted, 5 received, 0% packet loss"));
    assert_eq!(own(), (5, 5, 0));
    // A router that refuses answers each request with an error.
    chain.nodes[1].filter("forward", &["reject with icmpx type admin-prohibited"]);
    let theirs = printed(client, "ping", &words).unwrap();
    assert!(
        theirs.contains("5 packets transmitted, 0 received, +5 errors, 100% packet loss"),
        "{theirs}"
    );
    assert_eq!(own(), (5, 0, 5));
}
