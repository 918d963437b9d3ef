//! Lines, word by word.

use std::net::IpAddr;

use super::*;
use crate::statistics::Statistics;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn reply() -> Reply {
    Reply {
        target: "10.0.0.1".to_owned(),
        from: address("10.0.0.1"),
        sequence: 65_537,
        bytes: 64,
        ttl: Some(63),
        rtt: Some(Duration::from_micros(1234)),
        duplicate: false,
        reordered: false,
        time: 1_700_000_000.25,
    }
}

fn line(event: &PingEvent) -> String {
    PingStyle::default().text(event)
}

#[test]
fn a_reply_has_the_line_of_ping() {
    let line_of = |reply: Reply| line(&PingEvent::Reply(reply));
    assert_eq!(
        line_of(reply()),
        "64 bytes from 10.0.0.1: icmp_seq=1 ttl=63 time=1.23 ms\n"
    );
    let named = Reply {
        target: "web".to_owned(),
        duplicate: true,
        rtt: None,
        ttl: None,
        ..reply()
    };
    assert_eq!(
        line_of(named),
        "64 bytes from web (10.0.0.1): icmp_seq=1 (DUP!)\n"
    );
    let style = PingStyle {
        timestamps: true,
        ..PingStyle::default()
    };
    let stamped = style.text(&PingEvent::Reply(reply()));
    assert!(
        stamped.starts_with("[1700000000.250000] 64 bytes"),
        "{stamped}"
    );
}

#[test]
fn a_flood_is_dots_that_disappear() {
    let style = PingStyle {
        flood: true,
        ..PingStyle::default()
    };
    let sent = PingEvent::Sent {
        target: "a".to_owned(),
        sequence: 1,
    };
    assert_eq!(style.text(&sent), ".");
    assert_eq!(style.text(&PingEvent::Reply(reply())), "\u{8} \u{8}");
    assert_eq!(line(&sent), "");
}

#[test]
fn an_error_names_its_sender() {
    let error = |from, sequence| PingEvent::Error {
        target: "web".to_owned(),
        from,
        sequence,
        icmp: None,
        message: "Destination Host Unreachable".to_owned(),
        time: 0.0,
    };
    assert_eq!(
        line(&error(Some(address("10.0.0.9")), Some(3))),
        "From 10.0.0.9 icmp_seq=3 Destination Host Unreachable\n"
    );
    assert_eq!(
        line(&error(None, None)),
        "web Destination Host Unreachable\n"
    );
}

#[test]
fn the_summary_has_the_lines_of_ping_and_one_more() {
    let mut statistics = Statistics::default();
    for millis in [1, 2, 3] {
        statistics.on_sent();
        statistics.on_reply(Some(Duration::from_millis(millis)), false);
    }
    let summary = |statistics: &Statistics| {
        line(&PingEvent::Summary {
            target: "web".to_owned(),
            address: address("10.0.0.1"),
            elapsed: Duration::from_millis(2003),
            summary: statistics.summary(),
        })
    };
    let text = summary(&statistics);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "",
            "--- web ping statistics ---",
            "3 packets transmitted, 3 received, 0% packet loss, time 2003ms",
            "rtt min/avg/max/mdev = 1.000/2.000/3.000/0.816 ms",
        ]
    );
    assert!(
        lines[4].starts_with("rtt p50/p95/p99/jitter = 2."),
        "{}",
        lines[4]
    );
    assert_eq!(lines.len(), 5);
    let mut lost = Statistics::default();
    for _ in 0..3 {
        lost.on_sent();
    }
    lost.on_reply(None, false);
    lost.on_duplicate();
    lost.on_error();
    assert!(summary(&lost).ends_with(
        "3 packets transmitted, 1 received, +1 duplicates, +1 errors, 66.6667% packet loss, time \
         2003ms\n"
    ));
}

#[test]
fn the_first_line_tells_the_lengths() {
    let start = |target: &str, ip: &str, length| PingEvent::Start {
        target: target.to_owned(),
        address: address(ip),
        size: 56,
        length,
    };
    assert_eq!(
        line(&start("web", "10.0.0.1", 84)),
        "PING web (10.0.0.1) 56(84) bytes of data.\n"
    );
    assert_eq!(
        line(&start("::1", "::1", 104)),
        "PING ::1 (::1) 56 data bytes\n"
    );
}

#[test]
fn numbers_have_the_digits_of_ping() {
    for (micros, expected) in [
        (21, "0.021"),
        (1_234, "1.23"),
        (12_345, "12.3"),
        (123_456, "123"),
        (99_960, "100"),
    ] {
        assert_eq!(short_millis(Duration::from_micros(micros)), expected);
    }
    for (value, expected) in [
        (0.0, "0"),
        (100.0, "100"),
        (12.5, "12.5"),
        (100.0 / 3.0, "33.3333"),
        (0.1, "0.1"),
        (100.0 / 30.0, "3.33333"),
    ] {
        assert_eq!(percent(value), expected);
    }
}

#[test]
fn the_table_has_a_row_for_each_target() {
    let mut statistics = Statistics::default();
    statistics.on_sent();
    let dead = statistics.summary();
    statistics.on_reply(Some(Duration::from_millis(5)), false);
    let alive = statistics.summary();
    let rows = table_rows([("a", &alive), ("b", &dead)]);
    assert_eq!(
        rows[1],
        [
            "a", "1", "1", "0%", "5.000", "5.000", "5.000", "0.000", "5.000"
        ]
    );
    assert_eq!(rows[2], ["b", "1", "0", "100%", "-", "-", "-", "-", "-"]);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    assert_eq!(
        live_line("a", &alive),
        "a: 1/1 received, 0% loss, last/min/avg/max/p95 5.000/5.000/5.000/5.000/5.000 ms"
    );
    assert_eq!(live_line("b", &dead), "b: 0/1 received, 100% loss");
}
