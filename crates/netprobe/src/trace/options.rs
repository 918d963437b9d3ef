//! Options of a trace: kind and number of probes, maximum TTL.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::millis;

/// The most flows of a trace.
pub const MOST_FLOWS: u8 = 16;
/// The most probes to a hop in each flow.
pub const MOST_QUERIES: u8 = 10;

/// Options of a trace. Defaults are those of traceroute, but for the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct TraceOptions {
    /// The kind of probe.
    pub method: TraceMethod,
    /// The destination port of UDP and TCP; the same for all probes.
    pub port: u16,
    /// The first TTL, from 1.
    pub first: u8,
    /// The last TTL.
    pub max: u8,
    /// Probes to each hop, in each flow.
    pub queries: u8,
    /// Flows, from 1 to [`MOST_FLOWS`]. Routers that balance load send all probes of a flow the same
    /// way.
    pub flows: u8,
    /// A probe without an answer after this time is lost; sooner when other answers show that the
    /// way is short.
    #[serde(with = "millis", rename = "waitMs")]
    pub wait: Duration,
    /// Maximum number of probes in flight.
    pub window: u16,
    /// Length of a UDP or ICMP packet with its headers, in bytes.
    pub length: u16,
    /// Searches the MTU of each hop: packets begin with the longest length and must not be
    /// fragmented.
    pub mtu: bool,
    /// Repeats the trace so often with one probe to each hop, and reports a table after each; 0
    /// never ends.
    pub rounds: Option<u64>,
    /// Time between two such rounds.
    #[serde(with = "millis", rename = "intervalMs")]
    pub interval: Duration,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            method: TraceMethod::Udp,
            port: 33_434,
            first: 1,
            max: 30,
            queries: 3,
            flows: 1,
            wait: Duration::from_secs(5),
            window: 48,
            length: 60,
            mtu: false,
            rounds: None,
            interval: Duration::from_secs(1),
        }
    }
}

impl TraceOptions {
    /// The same options with values that the engine can work with.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.first = self.first.max(1);
        self.max = self.max.max(self.first);
        self.queries = self.queries.clamp(1, MOST_QUERIES);
        self.flows = self.flows.clamp(1, MOST_FLOWS);
        self.window = self.window.max(1);
        if self.mtu {
            // One after the other: a length that a hop refuses must not be sent to the next one.
            (self.window, self.queries, self.flows) = (1, 1, 1);
        }
        if self.rounds.is_some() {
            (self.queries, self.flows) = (1, 1);
        }
        self
    }
}

/// The kind of probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TraceMethod {
    /// A UDP datagram.
    #[default]
    Udp,
    /// The first packet of a TCP connection.
    Tcp,
    /// An ICMP echo request.
    Icmp,
}
