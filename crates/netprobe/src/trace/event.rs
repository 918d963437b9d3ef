//! Events of a trace.

use std::{net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use super::options::TraceMethod;
use crate::{icmp_error::IcmpError, millis, statistics::Summary};

/// One report. As JSON it is an object whose field `event` is its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum TraceEvent {
    /// The first probe is about to be sent.
    #[serde(rename_all = "camelCase")]
    Start {
        /// The target, as it was given.
        target: String,
        /// Its address.
        address: IpAddr,
        /// The kind of probe.
        method: TraceMethod,
        /// The last TTL.
        max_hops: u8,
        /// Length of a packet with its headers, in bytes.
        length: u16,
    },
    /// All probes to a hop are answered or lost.
    Hop(Hop),
    /// A round of a repeated trace is over.
    #[serde(rename_all = "camelCase")]
    Round {
        /// The number of the round, from 1.
        round: u64,
        /// The hops as they are known so far.
        hops: Vec<HopSummary>,
    },
    /// The last report.
    #[serde(rename_all = "camelCase")]
    End {
        /// Whether the target answered.
        reached: bool,
        /// The different ways that flows took: the addresses from hop to hop, and nothing for a hop
        /// that did not answer.
        paths: Vec<TracePath>,
    },
}

/// A hop of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// Its distance.
    pub ttl: u8,
    /// The results of the probes.
    pub probes: Vec<HopProbe>,
    /// The MTU of the link behind it, if it said that a probe is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HopProbe {
    /// Its flow, from 0.
    pub flow: u8,
    /// The answer; absent if it was lost.
    #[serde(flatten)]
    pub answer: Option<HopAnswer>,
}

/// An answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HopAnswer {
    /// The sender.
    pub from: IpAddr,
    /// The round trip time.
    #[serde(with = "millis", rename = "rttMs")]
    pub rtt: Duration,
    /// The target itself answered.
    pub reached: bool,
    /// The ICMP error; absent for answers of other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icmp: Option<IcmpError>,
}

/// A hop in the table of a repeated trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HopSummary {
    /// Its distance.
    pub ttl: u8,
    /// Hosts that responded, the latest last.
    pub addresses: Vec<IpAddr>,
    /// The statistics of its probes.
    #[serde(flatten)]
    pub summary: Summary,
}

/// The way that some flows took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TracePath {
    /// The flows that took it.
    pub flows: Vec<u8>,
    /// The addresses from hop to hop, from the first TTL.
    pub hops: Vec<Option<IpAddr>>,
}
