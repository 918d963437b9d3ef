//! Reports as the lines that users of traceroute and mtr know.

use std::{fmt::Write as _, net::IpAddr};

use super::event::{Hop, HopAnswer, HopSummary, TraceEvent, TracePath};
use crate::{
    ping::text::long_millis,
    statistics::{RttSummary, Summary},
};

/// The names of addresses, if they are known and wanted.
pub type Names<'a> = &'a dyn Fn(IpAddr) -> Option<String>;

/// The text of a report of a single trace, with its line feeds; empty for other reports.
#[must_use]
pub fn text(event: &TraceEvent, names: Names<'_>) -> String {
    match event {
        TraceEvent::Start {
            target,
            address,
            max_hops,
            length,
            ..
        } => format!(
            "traceroute to {target} ({address}), {max_hops} hops max, {length} byte packets\n"
        ),
        TraceEvent::Hop(hop) => hop_line(hop, names),
        TraceEvent::End { paths, .. } if paths.len() > 1 => {
            let lines = paths.iter().map(path_line);
            format!("{} paths:\n{}", paths.len(), lines.collect::<String>())
        }
        TraceEvent::End { .. } | TraceEvent::Round { .. } => String::new(),
    }
}

fn hop_line(hop: &Hop, names: Names<'_>) -> String {
    let mut line = format!("{:2} ", hop.ttl);
    let mut known: Option<IpAddr> = None;
    for probe in &hop.probes {
        match &probe.answer {
            None => line.push_str(" *"),
            Some(answer) => {
                if known != Some(answer.from) {
                    known = Some(answer.from);
                    let _ = write!(line, " {}", host(answer.from, names));
                }
                let _ = write!(line, "  {} ms{}", long_millis(answer.rtt), mark(answer));
            }
        }
    }
    if let Some(mtu) = hop.mtu {
        let _ = write!(line, "  F={mtu}");
    }
    line.push('\n');
    line
}

fn mark(answer: &HopAnswer) -> String {
    let mark = answer.icmp.map(|icmp| icmp.mark()).unwrap_or_default();
    match mark.is_empty() {
        true => mark,
        false => format!(" {mark}"),
    }
}

fn host(address: IpAddr, names: Names<'_>) -> String {
    match names(address) {
        Some(name) => format!("{name} ({address})"),
        None => address.to_string(),
    }
}

fn path_line(path: &TracePath) -> String {
    let flows: Vec<String> = path
        .flows
        .iter()
        .map(|flow| (flow + 1).to_string())
        .collect();
    let hops = path.hops.iter().map(|hop| match hop {
        Some(address) => address.to_string(),
        None => "*".to_owned(),
    });
    let hops: Vec<String> = hops.collect();
    let noun = if flows.len() == 1 { "flow" } else { "flows" };
    format!("  {noun} {}: {}\n", flows.join(","), hops.join(" "))
}

/// The cells of the table of a repeated trace: the headings, then at least one row for each hop.
/// Further addresses of a hop have rows of their own.
#[must_use]
pub fn table_rows(hops: &[HopSummary], names: Names<'_>) -> Vec<Vec<String>> {
    let headings = [
        "HOP", "HOST", "LOSS", "SENT", "LAST", "AVG", "BEST", "WORST", "STDEV",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for hop in hops {
        let mut addresses = hop.addresses.iter().rev();
        let first = addresses
            .next()
            .map_or_else(|| "???".to_owned(), |address| host(*address, names));
        let Summary {
            sent,
            loss_percent,
            rtt,
            ..
        } = &hop.summary;
        let mut row = vec![
            hop.ttl.to_string(),
            first,
            format!("{loss_percent:.1}%"),
            sent.to_string(),
        ];
        match rtt {
            Some(RttSummary {
                last,
                avg,
                min,
                max,
                mdev,
                ..
            }) => row.extend([last, avg, min, max, mdev].map(|time| long_millis(*time))),
            None => row.extend(["-"; 5].map(str::to_owned)),
        }
        rows.push(row);
        rows.extend(addresses.map(|address| vec![String::new(), host(*address, names)]));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        icmp_error::IcmpError, packet::Family, statistics::Statistics, trace::event::HopProbe,
        trace::options::TraceMethod,
    };

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn none(_: IpAddr) -> Option<String> {
        None
    }

    fn answered(from: &str, code: Option<u8>) -> HopProbe {
        let answer = HopAnswer {
            from: address(from),
            rtt: Duration::from_micros(1234),
            reached: false,
            icmp: code.map(|code| IcmpError {
                family: Family::V4,
                kind: 3,
                code,
                mtu: 0,
            }),
        };
        HopProbe {
            flow: 0,
            answer: Some(answer),
        }
    }

    #[test]
    fn a_hop_has_the_line_of_traceroute() {
        let lost = HopProbe {
            flow: 0,
            answer: None,
        };
        let hop = |probes, mtu| {
            TraceEvent::Hop(Hop {
                ttl: 3,
                probes,
                mtu,
            })
        };
        let silent = hop(vec![lost.clone(), lost.clone(), lost.clone()], None);
        assert_eq!(text(&silent, &none), " 3  * * *\n");
        let mixed = hop(
            vec![
                answered("10.0.0.1", None),
                answered("10.0.0.1", Some(1)),
                lost,
                answered("10.0.0.2", None),
            ],
            Some(1400),
        );
        assert_eq!(
            text(&mixed, &none),
            " 3  10.0.0.1  1.234 ms  1.234 ms !H * 10.0.0.2  1.234 ms  F=1400\n"
        );
        let named = |_| Some("gw".to_owned());
        let one = hop(vec![answered("10.0.0.1", None)], None);
        assert_eq!(text(&one, &named), " 3  gw (10.0.0.1)  1.234 ms\n");
    }

    #[test]
    fn the_first_line_is_that_of_traceroute() {
        let start = TraceEvent::Start {
            target: "web".to_owned(),
            address: address("10.0.0.9"),
            method: TraceMethod::Udp,
            max_hops: 30,
            length: 60,
        };
        assert_eq!(
            text(&start, &none),
            "traceroute to web (10.0.0.9), 30 hops max, 60 byte packets\n"
        );
    }

    #[test]
    fn paths_are_listed_if_there_are_several() {
        let path = |flows: &[u8], last: Option<&str>| TracePath {
            flows: flows.to_vec(),
            hops: vec![Some(address("10.0.0.1")), last.map(address)],
        };
        let end = |paths| TraceEvent::End {
            reached: true,
            paths,
        };
        assert_eq!(text(&end(vec![path(&[0], None)]), &none), "");
        assert_eq!(
            text(
                &end(vec![path(&[0, 2], Some("10.0.0.2")), path(&[1], None)]),
                &none
            ),
            "2 paths:\n  flows 1,3: 10.0.0.1 10.0.0.2\n  flow 2: 10.0.0.1 *\n"
        );
    }

    #[test]
    fn the_table_has_a_row_for_each_address() {
        let mut statistics = Statistics::default();
        statistics.on_sent();
        statistics.on_sent();
        statistics.on_reply(Some(Duration::from_millis(2)), false);
        let hops = [
            HopSummary {
                ttl: 1,
                addresses: vec![address("10.0.0.1"), address("10.0.0.2")],
                summary: statistics.summary(),
            },
            HopSummary {
                ttl: 2,
                addresses: Vec::new(),
                summary: Summary::default(),
            },
        ];
        let rows = table_rows(&hops, &none);
        assert_eq!(
            rows[1],
            [
                "1", "10.0.0.2", "50.0%", "2", "2.000", "2.000", "2.000", "2.000", "0.000"
            ]
        );
        assert_eq!(rows[2], ["", "10.0.0.1"]);
        assert_eq!(rows[3], ["2", "???", "0.0%", "0", "-", "-", "-", "-", "-"]);
    }
}
