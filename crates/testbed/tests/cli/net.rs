//! `rubelet net --pod` with running pods.

use rubelet_testbed::Agent;
use rubelet_testbed::runtime::Kind;
use serde_json::Value;

use crate::outside::{self, PodText, TIMEOUT, children::Lines};

fn pod_ip(agent: &Agent, pod: &str) -> String {
    let shown = agent.pod(pod).unwrap().unwrap();
    shown["status"]["podIP"].as_str().unwrap().to_owned()
}

#[test]
fn network_commands_need_no_tool_in_the_image() {
    let pods = [
        PodText::new("one"),
        PodText::new("two"),
        PodText::new("of-node").spec("hostNetwork", true),
    ];
    let (runtime, agent) = outside::with_pods(&pods);
    // With docker, packets between pods of a CNI plugin are dropped unless its configuration accepts
    // them; the bridge of the embedded runtime accepts its own packets.
    let on_bridge = runtime.kind() == Kind::Embedded;
    let address = pod_ip(&agent, if on_bridge { "two" } else { "of-node" });
    for pod in ["one", "pod/one", "of-node"] {
        let words = ["net", "ping", "--pod", pod, "-c", "2", "-i", "0.01"];
        let ended = agent.cli(&[&words[..], &[&*address]].concat()).unwrap();
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
        assert!(
            ended
                .stdout
                .contains("2 packets transmitted, 2 received, 0% packet loss"),
            "{ended:?}"
        );
    }

    let hops = |pod: &str| {
        let words = ["net", "trace", "-n", "-o", "json", "--pod", pod, &*address];
        let ended = agent.cli(&words).unwrap();
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
        let events = ended.stdout.lines();
        let events: Vec<Value> = events
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        events
            .iter()
            .filter(|event| event["event"] == "hop")
            .count()
    };
    assert_eq!(hops("of-node"), 1);
    // On the bridge of the embedded runtime the host routes between pods.
    assert_eq!(hops("one"), 1 + usize::from(on_bridge));

    // Each interface sees all requests and replies.
    let to = match on_bridge {
        true => ["--to", "two"],
        false => ["--to-host", &address],
    };
    let words = [&["net", "path", "--from", "one"][..], &to].concat();
    let followed = agent.cli(&words).unwrap();
    assert_eq!((followed.code, &*followed.stderr), (0, ""), "{followed:?}");
    let rows = followed.stdout.lines().skip(1);
    let points: Vec<&str> = rows.take_while(|line| !line.is_empty()).collect();
    assert!(points[0].starts_with("eth0 (pod one"), "{points:?}");
    if on_bridge {
        assert_eq!(points.len(), 6, "{points:?}");
        assert!(points[5].starts_with("eth0 (pod two"), "{points:?}");
    }
    for point in points {
        let numbers: Vec<&str> = point.split_whitespace().rev().take(2).collect();
        assert_eq!(numbers, ["3", "3"], "{followed:?}");
    }

    // Routes beyond the pods' own network differ between machines.
    let checked = agent
        .cli(&["net", "check", "one", "--outside", &address])
        .unwrap();
    let starts = ["ok       address     eth0 has ", "ok       gateway     "];
    for (line, start) in checked.stdout.lines().zip(starts) {
        assert!(line.starts_with(start), "{checked:?}");
    }
    assert!(checked.stdout.contains("ok       outside"), "{checked:?}");
    assert!(checked.stdout.contains("ok       MTU"), "{checked:?}");

    let missing = agent
        .cli(&["net", "ping", "--pod", "three", "::1"])
        .unwrap();
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.stderr.contains("three"), "{missing:?}");
}

#[test]
fn a_probe_ends_with_its_pod_and_prints_its_results() {
    let (_runtime, agent) = outside::with_pods(&[PodText::new("one")]);
    let words = ["net", "ping", "--pod", "one", "127.0.0.1"];
    let mut pinging = Lines::start(agent.cli_command().args(words));
    pinging.wait("an answer", TIMEOUT, |line| line.contains("icmp_seq=1"));
    agent.remove_manifest("one.yaml").unwrap();
    pinging.wait("the results", TIMEOUT, |line| {
        line.contains("0% packet loss")
    });
}
