//! Events of a ping.

use std::{net::IpAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{icmp_error::IcmpError, millis, statistics::Summary};

/// One report. As JSON it is an object whose field `event` is its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum PingEvent {
    /// The first request to a target is about to be sent.
    #[serde(rename_all = "camelCase")]
    Start {
        /// The target, as it was given.
        target: String,
        /// Its address.
        address: IpAddr,
        /// Bytes of data in a request.
        size: usize,
        /// Length of a packet with its headers, in bytes.
        length: usize,
    },
    /// A request was sent. Reported in floods only.
    #[serde(rename_all = "camelCase")]
    Sent {
        /// The target.
        target: String,
        /// The number of the request, from 1.
        sequence: u64,
    },
    /// An answer arrived.
    Reply(Reply),
    /// An answer has other data than what was sent.
    #[serde(rename_all = "camelCase")]
    Damaged {
        /// The target.
        target: String,
        /// The sender.
        from: IpAddr,
        /// When, in seconds since the epoch.
        time: f64,
    },
    /// An ICMP error about a request, or an error of this machine's kernel.
    #[serde(rename_all = "camelCase")]
    Error {
        /// The target.
        target: String,
        /// Sender of the ICMP message; absent for errors of this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<IpAddr>,
        /// The sequence number of the request, if the message quotes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sequence: Option<u64>,
        /// The ICMP message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icmp: Option<IcmpError>,
        /// The meaning of the error.
        message: String,
        /// When, in seconds since the epoch.
        time: f64,
    },
    /// A request was not answered in time.
    #[serde(rename_all = "camelCase")]
    Lost {
        /// The target.
        target: String,
        /// The number of the request, from 1.
        sequence: u64,
        /// When it counted as lost, in seconds since the epoch.
        time: f64,
    },
    /// The last report about a target.
    #[serde(rename_all = "camelCase")]
    Summary {
        /// The target, as it was given.
        target: String,
        /// Its address.
        address: IpAddr,
        /// The duration.
        #[serde(with = "millis", rename = "elapsedMs")]
        elapsed: Duration,
        /// The result.
        #[serde(flatten)]
        summary: Summary,
    },
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// The target.
    pub target: String,
    /// The sender; another one than the target's address if the target is reached by a broadcast
    /// address.
    pub from: IpAddr,
    /// The number of the request, from 1.
    pub sequence: u64,
    /// Length of the ICMP message, in bytes.
    pub bytes: usize,
    /// The TTL or hop limit with which it arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// The round trip time; absent if requests are too short to carry a time.
    #[serde(
        with = "millis::optional",
        rename = "rttMs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub rtt: Option<Duration>,
    /// The request was answered before.
    pub duplicate: bool,
    /// A later request was answered before.
    pub reordered: bool,
    /// When, in seconds since the epoch.
    pub time: f64,
}
