//! Reports as the lines that users of ping know.

use std::{fmt::Write as _, time::Duration};

use super::{
    event::{PingEvent, Reply},
    mtu::{MtuEvent, MtuResult, PathMtu},
};
use crate::statistics::{RttSummary, Summary};

/// Output format of events.
#[derive(Debug, Clone, Copy, Default)]
pub struct PingStyle {
    /// The time stands before each line.
    pub timestamps: bool,
    /// Requests and replies of a flood are dots that disappear.
    pub flood: bool,
    /// Several targets: only their table at the end has the results.
    pub table: bool,
}

impl PingStyle {
    /// The text of a report, with its line feeds; often empty.
    #[must_use]
    pub fn text(self, event: &PingEvent) -> String {
        match event {
            PingEvent::Start { .. } if self.table => String::new(),
            PingEvent::Start {
                target,
                address,
                size,
                length,
            } if address.is_ipv4() => {
                format!("PING {target} ({address}) {size}({length}) bytes of data.\n")
            }
            PingEvent::Start {
                target,
                address,
                size,
                ..
            } => format!("PING {target} ({address}) {size} data bytes\n"),
            PingEvent::Sent { .. } if self.flood => ".".to_owned(),
            PingEvent::Sent { .. } | PingEvent::Lost { .. } => String::new(),
            PingEvent::Reply(_) if self.flood => "\u{8} \u{8}".to_owned(),
            PingEvent::Reply(reply) => {
                format!("{}{}", self.stamp(reply.time), reply_line(reply))
            }
            PingEvent::Error { .. } if self.flood => "\u{8}E".to_owned(),
            PingEvent::Error {
                target,
                from,
                sequence,
                message,
                time,
                ..
            } => {
                let mut line = self.stamp(*time);
                match from {
                    Some(from) => {
                        let _ = write!(line, "From {from}");
                    }
                    None => line.push_str(target),
                }
                if let Some(sequence) = sequence {
                    let _ = write!(line, " icmp_seq={}", sequence & 0xffff);
                }
                let _ = writeln!(line, " {message}");
                line
            }
            PingEvent::Damaged { from, time, .. } => format!(
                "{}From {from}: the data of the reply differs from what was sent\n",
                self.stamp(*time)
            ),
            PingEvent::Summary { .. } if self.table => String::new(),
            PingEvent::Summary {
                target,
                elapsed,
                summary,
                ..
            } => summary_text(target, *elapsed, summary),
        }
    }

    fn stamp(self, time: f64) -> String {
        match self.timestamps {
            true => format!("[{time:.6}] "),
            false => String::new(),
        }
    }
}

fn reply_line(reply: &Reply) -> String {
    let Reply {
        target,
        from,
        bytes,
        ..
    } = reply;
    let from_text = from.to_string();
    let mut line = match *target == from_text {
        true => format!("{bytes} bytes from {from}:"),
        false => format!("{bytes} bytes from {target} ({from}):"),
    };
    let _ = write!(line, " icmp_seq={}", reply.sequence & 0xffff);
    if let Some(ttl) = reply.ttl {
        let _ = write!(line, " ttl={ttl}");
    }
    if let Some(rtt) = reply.rtt {
        let _ = write!(line, " time={} ms", short_millis(rtt));
    }
    if reply.duplicate {
        line.push_str(" (DUP!)");
    }
    line.push('\n');
    line
}

fn summary_text(target: &str, elapsed: Duration, summary: &Summary) -> String {
    let mut text = format!(
        "\n--- {target} ping statistics ---\n{} packets transmitted, {} received",
        summary.sent, summary.received
    );
    for (count, what) in [
        (summary.duplicates, "duplicates"),
        (summary.damaged, "corrupted"),
        (summary.errors, "errors"),
    ] {
        if count > 0 {
            let _ = write!(text, ", +{count} {what}");
        }
    }
    let loss = percent(summary.loss_percent);
    let millis = elapsed.as_millis();
    let _ = writeln!(text, ", {loss}% packet loss, time {millis}ms");
    if let Some(rtt) = &summary.rtt {
        let RttSummary {
            min,
            avg,
            max,
            mdev,
            ..
        } = rtt;
        let times = [min, avg, max, mdev].map(|time| long_millis(*time));
        let _ = writeln!(text, "rtt min/avg/max/mdev = {} ms", times.join("/"));
        let times = [rtt.p50, rtt.p95, rtt.p99, rtt.jitter].map(long_millis);
        let _ = write!(text, "rtt p50/p95/p99/jitter = {} ms", times.join("/"));
        if summary.reordered > 0 {
            let _ = write!(text, ", {} reordered", summary.reordered);
        }
        text.push('\n');
    }
    text
}

/// The text of a report of a search for the path MTU, with its line feeds.
#[must_use]
pub fn mtu_text(event: &MtuEvent) -> String {
    match event {
        MtuEvent::Tried {
            length,
            result,
            from,
            rtt,
            ..
        } => {
            let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
            let what = match result {
                MtuResult::Answered => "answer".to_owned() + &from,
                MtuResult::TooLongHere(mtu) => format!("too long for this machine, mtu={mtu}"),
                MtuResult::TooLong(mtu) => format!("frag needed{from}, mtu={mtu}"),
                MtuResult::Silence => "no answer".to_owned(),
            };
            let time = rtt.map(|rtt| format!(" time={} ms", short_millis(rtt)));
            format!("{length} bytes: {what}{}\n", time.unwrap_or_default())
        }
        MtuEvent::PathMtu {
            target,
            address,
            found,
        } => match found {
            Some(PathMtu { mtu, black_hole }) => {
                let hole = match black_hole {
                    true => "longer packets vanish without an ICMP message: a firewall drops it\n",
                    false => "",
                };
                format!("path MTU to {target} ({address}): {mtu} bytes\n{hole}")
            }
            None => format!("path MTU to {target} ({address}): unknown, nothing is answered\n"),
        },
    }
}

/// The running result of a target in one line without a line feed, for a terminal.
#[must_use]
pub fn live_line(target: &str, summary: &Summary) -> String {
    let mut line = format!(
        "{target}: {}/{} received, {}% loss",
        summary.received,
        summary.sent,
        percent(summary.loss_percent)
    );
    if let Some(rtt) = &summary.rtt {
        let times = [rtt.last, rtt.min, rtt.avg, rtt.max, rtt.p95].map(long_millis);
        let _ = write!(line, ", last/min/avg/max/p95 {} ms", times.join("/"));
    }
    line
}

/// The cells of the table of several targets: the headings, then a row for each summary.
#[must_use]
pub fn table_rows<'a>(
    results: impl IntoIterator<Item = (&'a str, &'a Summary)>,
) -> Vec<Vec<String>> {
    let headings = [
        "TARGET", "SENT", "RECEIVED", "LOSS", "MIN", "AVG", "MAX", "MDEV", "P95",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for (target, summary) in results {
        let mut row = vec![
            target.to_owned(),
            summary.sent.to_string(),
            summary.received.to_string(),
            format!("{}%", percent(summary.loss_percent)),
        ];
        match &summary.rtt {
            Some(rtt) => {
                row.extend([rtt.min, rtt.avg, rtt.max, rtt.mdev, rtt.p95].map(long_millis));
            }
            None => row.extend(["-"; 5].map(str::to_owned)),
        }
        rows.push(row);
    }
    rows
}

/// Milliseconds with the digits that ping shows for a single time: about three in all.
#[must_use]
pub(crate) fn short_millis(time: Duration) -> String {
    let millis = time.as_nanos() as f64 / 1e6;
    let digits = match millis {
        millis if millis >= 99.95 => 0,
        millis if millis >= 9.995 => 1,
        millis if millis >= 0.9995 => 2,
        _ => 3,
    };
    format!("{millis:.digits$}")
}

/// Milliseconds with three digits behind the point.
#[must_use]
pub(crate) fn long_millis(time: Duration) -> String {
    format!("{:.3}", time.as_nanos() as f64 / 1e6)
}

/// Six digits at most, without zeros at the end.
fn percent(percent: f64) -> String {
    let digits = match percent {
        percent if percent >= 10.0 => 4,
        _ => 5,
    };
    let text = format!("{percent:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
