//! Reports of a ping as lines, as a live line, as a table or as JSON; and whether the hosts answer.

use rubelet_netprobe::{
    ping::{
        PingEvent,
        text::{PingStyle, live_line, table_rows},
    },
    request::json_line,
    statistics::{Statistics, Summary},
};

use super::CLEAR_LINE;
use crate::print::table;

/// Seconds between two updates of the live line.
const UPDATE: f64 = 0.1;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PingDisplay {
    /// Lines as ping has them.
    Lines {
        /// The time stands before each line.
        timestamps: bool,
        /// Requests and replies of a flood are dots that disappear.
        flood: bool,
    },
    /// One line that is overwritten.
    Live,
    /// A table at the end.
    Table,
    /// A JSON object in each line.
    Json,
}

/// The output of one ping.
pub(super) struct PingOutput {
    shown: PingDisplay,
    /// The answers that a host has to give within the deadline.
    wanted: Option<u64>,
    live: Statistics,
    updated: f64,
    results: Vec<(String, Summary)>,
}

impl PingOutput {
    pub(super) fn new(shown: PingDisplay, wanted: Option<u64>) -> Self {
        Self {
            shown,
            wanted,
            live: Statistics::default(),
            updated: 0.0,
            results: Vec::new(),
        }
    }

    /// The text of a report; often empty.
    pub(super) fn text(&mut self, event: &PingEvent) -> String {
        if let PingEvent::Summary {
            target, summary, ..
        } = event
        {
            self.results.push((target.clone(), summary.clone()));
        }
        match self.shown {
            PingDisplay::Lines { timestamps, flood } => PingStyle {
                timestamps,
                flood,
                table: false,
            }
            .text(event),
            PingDisplay::Table => PingStyle {
                table: true,
                ..PingStyle::default()
            }
            .text(event),
            PingDisplay::Live => self.live_text(event),
            PingDisplay::Json => match event {
                PingEvent::Sent { .. } => String::new(),
                event => json_line(event),
            },
        }
    }

    /// The text behind the last report.
    pub(super) fn end(&self) -> String {
        match self.shown {
            PingDisplay::Table => {
                let results = self.results.iter();
                table(&table_rows(
                    results.map(|(target, summary)| (target.as_str(), summary)),
                ))
            }
            _ => String::new(),
        }
    }

    /// Whether each host has responded, and with a deadline often enough.
    pub(super) fn all_answer(&self) -> bool {
        !self.results.is_empty()
            && self.results.iter().all(|(_, summary)| {
                summary.received > 0 && summary.received >= self.wanted.unwrap_or(1)
            })
    }

    fn live_text(&mut self, event: &PingEvent) -> String {
        let (target, time) = match event {
            PingEvent::Sent { target, .. } => {
                self.live.on_sent();
                (target, None)
            }
            PingEvent::Reply(reply) => {
                match reply.duplicate {
                    true => self.live.on_duplicate(),
                    false => self.live.on_reply(reply.rtt, reply.reordered),
                }
                (&reply.target, Some(reply.time))
            }
            PingEvent::Lost { target, time, .. }
            | PingEvent::Error { target, time, .. }
            | PingEvent::Damaged { target, time, .. } => (target, Some(*time)),
            PingEvent::Start { .. } => return PingStyle::default().text(event),
            PingEvent::Summary { .. } => {
                return format!("{CLEAR_LINE}{}", PingStyle::default().text(event));
            }
        };
        // A terminal is slower than a network.
        match time {
            Some(time) if time - self.updated >= UPDATE || time < self.updated => {
                self.updated = time;
                format!("{CLEAR_LINE}{}", live_line(target, &self.live.summary()))
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use rubelet_netprobe::ping::event::Reply;

    use super::*;

    fn summary(target: &str, received: u64) -> PingEvent {
        PingEvent::Summary {
            target: target.to_owned(),
            address: Ipv4Addr::LOCALHOST.into(),
            elapsed: Duration::ZERO,
            summary: Summary {
                sent: 3,
                received,
                ..Summary::default()
            },
        }
    }

    #[test]
    fn the_exit_code_is_that_of_ping() {
        for (wanted, received, answers) in [
            (None, 0, false),
            (None, 1, true),
            (Some(3), 2, false),
            (Some(3), 3, true),
        ] {
            let mut output = PingOutput::new(PingDisplay::Json, wanted);
            output.text(&summary("a", received));
            assert_eq!(output.all_answer(), answers, "{wanted:?} {received}");
            output.text(&summary("b", 0));
            assert!(!output.all_answer());
        }
        assert!(!PingOutput::new(PingDisplay::Live, None).all_answer());
    }

    #[test]
    fn the_live_line_is_overwritten_ten_times_a_second() {
        let mut output = PingOutput::new(PingDisplay::Live, None);
        let mut reply = |sequence, time| {
            let sent = PingEvent::Sent {
                target: "a".to_owned(),
                sequence,
            };
            assert_eq!(output.text(&sent), "");
            let reply = PingEvent::Reply(Reply {
                target: "a".to_owned(),
                from: Ipv4Addr::LOCALHOST.into(),
                sequence,
                bytes: 64,
                ttl: None,
                rtt: None,
                duplicate: false,
                reordered: false,
                time,
            });
            output.text(&reply)
        };
        assert_eq!(reply(1, 5.0), "\r\x1b[Ka: 1/1 received, 0% loss");
        assert_eq!(reply(2, 5.01), "");
        assert_eq!(reply(3, 5.2), "\r\x1b[Ka: 3/3 received, 0% loss");
    }

    #[test]
    fn several_hosts_have_a_table() {
        let mut output = PingOutput::new(PingDisplay::Table, None);
        for event in [summary("a", 3), summary("b", 0)] {
            assert_eq!(output.text(&event), "");
        }
        let table = output.end();
        assert_eq!(table.lines().count(), 3);
        assert!(
            table.starts_with("TARGET   SENT   RECEIVED   LOSS"),
            "{table}"
        );
    }
}
