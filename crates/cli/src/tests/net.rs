//! `rubelet net` on loopback: what is printed, and how it ends. What networks do to packets is tested
//! with the engine.

use std::{net::Ipv4Addr, path::Path, time::Duration};

use futures_util::stream;
use rubelet_netprobe::{
    check::{CheckEvent, CheckKind, Finding},
    path::PathEvent,
    ping::{MtuEvent, PingEvent, event::Reply},
    request::{ProbeRequest, json_line},
    statistics::Statistics,
    trace::TraceEvent,
};
use rubelet_server::{NetRefusal, NetRequest, NetStream, Resource};

use super::fixture::{Ended, Screens, TestAgent, pod, type_words, words_at};

/// The agent's answer to a probe from inside a pod: one reply to a ping, in pieces that are no lines.
pub(super) fn answer(request: &NetRequest) -> Result<NetStream, NetRefusal> {
    let probe: ProbeRequest = serde_json::from_value(request.probe.clone()).unwrap();
    // The body is open until the client wants it to stop.
    assert!(request.stop.is_some());
    let (targets, options) = match probe {
        ProbeRequest::Ping {
            targets, options, ..
        } => (targets, options),
        ProbeRequest::Check { outside, .. } => return Ok(stream_of(&checked(outside.is_none()))),
        ProbeRequest::Path { target, .. } => {
            assert_eq!(target, "pod/default/db-n1");
            return Ok(stream_of(&path()));
        }
        _ => return Err(NetRefusal::Busy),
    };
    assert_eq!((&*request.pod.name, options.count), ("web-n1", Some(1)));
    let address = Ipv4Addr::new(10, 96, 0, 1).into();
    let rtt = Some(Duration::from_micros(1234));
    let mut statistics = Statistics::default();
    statistics.on_sent();
    statistics.on_reply(rtt, false);
    let target = targets.concat();
    let lines = [
        json_line(&PingEvent::Start {
            target: target.clone(),
            address,
            size: options.size,
            length: 84,
        }),
        json_line(&PingEvent::Reply(Reply {
            target: target.clone(),
            from: address,
            sequence: 1,
            bytes: 64,
            ttl: Some(63),
            rtt,
            duplicate: false,
            reordered: false,
            time: 0.5,
        })),
        json_line(&PingEvent::Summary {
            target,
            address,
            elapsed: Duration::from_millis(7),
            summary: statistics.summary(),
        }),
    ];
    Ok(stream_of(&lines))
}

/// Lines in pieces.
fn stream_of(lines: &[String]) -> NetStream {
    let pieces: Vec<_> = lines
        .concat()
        .as_bytes()
        .chunks(50)
        .map(|piece| Ok(bytes::Bytes::copy_from_slice(piece)))
        .collect();
    Box::pin(stream::iter(pieces))
}

/// A check that finds two things wrong, or nothing.
fn checked(wrong: bool) -> Vec<String> {
    let finding = |detail: &str| match wrong {
        true => Finding::wrong(detail, format!("Mend {detail}")),
        false => Finding::ok(detail),
    };
    [
        (
            CheckKind::Address,
            Finding::ok("eth0 has 10.1.0.2, mtu 1500"),
        ),
        (CheckKind::Dns, finding("the nameserver")),
        (CheckKind::Name, Finding::skipped("no nameserver answers")),
        (CheckKind::ApiServer, finding("the proxy")),
    ]
    .map(|(check, finding)| json_line(&CheckEvent::Checked { check, finding }))
    .to_vec()
}

/// A path that ends at the bridge.
fn path() -> Vec<String> {
    let point = |name: &str, requests| {
        json_line(&PathEvent::Point {
            name: name.to_owned(),
            requests,
            replies: 0,
        })
    };
    let finding = Finding::wrong("requests stop between a and b", "Rule 1 drops them");
    vec![
        point("a", 3),
        point("b", 0),
        json_line(&PathEvent::Result { finding }),
    ]
}

fn net(command: &str) -> Ended {
    let words = words_at(Path::new("/nonexistent"), &format!("net {command}"));
    type_words(words, &Screens::default(), false)
}

/// The lines of a command's output.
fn lines(command: &str) -> Vec<String> {
    let data = net(command).data();
    data.lines().map(str::to_owned).collect()
}

#[test]
fn a_host_that_answers_has_the_lines_of_ping() {
    if !rubelet_needs::root() {
        return;
    }
    let lines = lines("ping -c 2 -i 0.01 127.0.0.1");
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert_eq!(lines[0], "PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.");
    let reply = "64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=";
    let time = lines[1]
        .strip_prefix(reply)
        .and_then(|rest| rest.strip_suffix(" ms"));
    let time: Option<f64> = time.and_then(|ms| ms.parse().ok());
    assert!(time.is_some(), "{}", lines[1]);
    assert_eq!(lines[4], "--- 127.0.0.1 ping statistics ---");
    let sent = "2 packets transmitted, 2 received, 0% packet loss, time ";
    assert!(lines[5].starts_with(sent), "{}", lines[5]);
    let quiet = net("ping -q -c 1 -s 23 ::1").data();
    assert_eq!(quiet.lines().count(), 4, "{quiet}");
    assert!(
        quiet.starts_with("PING ::1 (::1) 23 data bytes\n"),
        "{quiet}"
    );
}

#[test]
fn reports_are_json_that_can_be_read_again() {
    if !rubelet_needs::root() {
        return;
    }
    let events: Vec<PingEvent> = lines("ping -c 2 -i 0.01 -o json ::1")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(matches!(events[0], PingEvent::Start { .. }), "{events:?}");
    assert!(matches!(&events[1], PingEvent::Reply(reply) if reply.sequence == 1));
    let Some(PingEvent::Summary { summary, .. }) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!((events.len(), summary.received), (4, 2));
    let events: Vec<TraceEvent> = lines("trace -o json -n 127.0.0.1")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(matches!(&events[1], TraceEvent::Hop(hop) if hop.probes.len() == 3));
    let mtu = lines("ping --mtu -o json 127.0.0.1");
    let last: MtuEvent = serde_json::from_str(mtu.last().unwrap()).unwrap();
    assert!(
        matches!(last, MtuEvent::PathMtu { found: Some(found), .. } if found.mtu == 65_535),
        "{mtu:?}"
    );
}

#[test]
fn several_hosts_have_one_table() {
    if !rubelet_needs::root() {
        return;
    }
    let lines = lines("ping -c 2 -i 0.01 --targets 127.0.0.1,::1");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("TARGET "), "{}", lines[0]);
    let received = |line: &str| line.split_whitespace().nth(2) == Some("2");
    assert!(lines[1..].iter().all(|line| received(line)), "{lines:?}");
}

#[test]
fn a_trace_has_the_lines_of_traceroute_and_the_table_of_mtr() {
    for method in ["", " -T -p 1"] {
        let lines = lines(&format!("trace -n{method} 127.0.0.1"));
        let first = "traceroute to 127.0.0.1 (127.0.0.1), 30 hops max, 60 byte packets";
        assert_eq!(lines[0], first);
        assert!(lines[1].starts_with(" 1  127.0.0.1  "), "{}", lines[1]);
        assert_eq!((lines.len(), lines[1].matches(" ms").count()), (2, 3));
    }
    let lines = lines("trace --mtr -c 2 -i 0.01 -n 127.0.0.1");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let cells: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(cells[..4], ["1", "127.0.0.1", "0.0%", "2"]);
}

#[test]
fn what_cannot_be_is_said_before_anything_is_sent() {
    for (command, code, error) in [
        ("ping", 2, "required arguments"),
        ("ping -c 0 ::1", 2, "0 is not in"),
        ("ping -i x ::1", 2, "give a number of seconds"),
        ("ping -s 99999 ::1", 2, "the most are 65507 bytes"),
        ("ping --live ::1", 2, "--live needs a terminal"),
        ("ping --mtu -c 3 ::1", 2, "cannot be used with"),
        ("ping -4 ::1", 2, "\"::1\" has no IPv4 address"),
        ("trace -6 127.0.0.1", 2, "\"127.0.0.1\" has no IPv6 address"),
        ("trace -f 9 -m 3 ::1", 2, "-f 9 is more than -m 3"),
        ("trace -I -p 1 ::1", 2, "cannot be used with"),
        ("trace -c 3 ::1", 2, "--mtr"),
        ("trace --flows 17 ::1", 2, "17 is not in"),
    ] {
        let message = net(command).error(code);
        assert!(message.contains(error), "{command}: {message}");
    }
}

#[test]
fn a_probe_from_inside_a_pod_is_shown_like_one_from_here() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "app"));
    let ended = agent.type_in("net ping --pod web -c 1 10.96.0.1").data();
    let lines: Vec<&str> = ended.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "PING 10.96.0.1 (10.96.0.1) 56(84) bytes of data.",
            "64 bytes from 10.96.0.1: icmp_seq=1 ttl=63 time=1.23 ms",
        ]
    );
    assert_eq!(
        lines[4],
        "1 packets transmitted, 1 received, 0% packet loss, time 7ms"
    );
    let json = agent
        .type_in("net ping --pod pod/web-n1 -c 1 -o json 10.96.0.1")
        .data();
    assert_eq!(json.lines().count(), 3, "{json}");
    let refused = agent.type_in("net trace --pod web 10.96.0.1").error(2);
    assert_eq!(refused, "error: too many probes are under way; try again\n");
    let missing = agent.type_in("net ping --pod db 10.96.0.1").error(2);
    assert!(missing.contains("db"), "{missing}");
    let alone = net("ping --namespace x ::1").error(2);
    assert!(alone.contains("--pod"), "{alone}");
}

#[test]
fn a_check_says_the_first_thing_that_is_wrong() {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "app"));
    let ended = agent.type_in("net check web");
    assert_eq!(ended.code, 1);
    assert_eq!(
        ended.out,
        "ok       address     eth0 has 10.1.0.2, mtu 1500\n\
         wrong    DNS         the nameserver\n\
         skipped  name        no nameserver answers\n\
         wrong    API server  the proxy\n\
         \n\
         The first thing that is wrong is the DNS: the nameserver.\n\
         Mend the nameserver.\n"
    );
    let json = agent.type_in("net check web -o json");
    assert_eq!((json.code, json.out.lines().count()), (1, 4));
    let well = agent.type_in("net check web --outside 192.0.2.1").data();
    assert_eq!(well.lines().count(), 4);
}

#[test]
fn a_path_shows_the_interfaces_and_where_packets_stop() {
    let agent = TestAgent::start();
    for name in ["web-n1", "db-n1"] {
        agent.node.put(Resource::Pods, pod("default", name, "app"));
    }
    let ended = agent.type_in("net path --from web --to db");
    assert_eq!(ended.code, 1);
    assert_eq!(
        ended.out,
        "INTERFACE   REQUESTS   REPLIES\n\
         a           3          0\n\
         b           0          0\n\
         \n\
         requests stop between a and b.\n\
         Rule 1 drops them.\n"
    );
    let neither = agent.type_in("net path --from web").error(2);
    assert!(neither.contains("--to"), "{neither}");
}
