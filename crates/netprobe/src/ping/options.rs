//! Options of a ping: packets, intervals, limits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    millis,
    packet::{ECHO_HEADER, Family},
};

/// The most data of an echo request with which an IPv4 packet has a length, in bytes.
pub const MOST_DATA: usize = 65_535 - 20 - ECHO_HEADER;

/// Options of a series of echo requests. Defaults are those of ping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PingOptions {
    /// Ends after so many requests; `None` never ends.
    pub count: Option<u64>,
    /// Time between two requests to a target.
    #[serde(with = "millis", rename = "intervalMs")]
    pub interval: Duration,
    /// Ends after this time, whatever was sent and received; requests are then sent until `count` of
    /// them are answered.
    #[serde(
        with = "millis::optional",
        rename = "deadlineMs",
        skip_serializing_if = "Option::is_none"
    )]
    pub deadline: Option<Duration>,
    /// A request without an answer after this time is lost.
    #[serde(with = "millis", rename = "timeoutMs")]
    pub timeout: Duration,
    /// Bytes of data in a request, at most [`MOST_DATA`].
    pub size: usize,
    /// TTL or hop limit of requests; `None` is the kernel's.
    pub ttl: Option<u8>,
    /// Whether requests may be fragmented; `None` is the kernel's setting.
    pub fragmentation: Option<Fragmentation>,
    /// The next request is sent when the last one is answered, or after 10 ms.
    pub flood: bool,
    /// Only the summaries are reported.
    pub quiet: bool,
}

impl Default for PingOptions {
    fn default() -> Self {
        Self {
            count: None,
            interval: Duration::from_secs(1),
            deadline: None,
            timeout: Duration::from_secs(10),
            size: 56,
            ttl: None,
            fragmentation: None,
            flood: false,
            quiet: false,
        }
    }
}

impl PingOptions {
    /// The length of a packet on the wire, with its headers, in bytes.
    #[must_use]
    pub(crate) fn packet_length(&self, family: Family) -> usize {
        family.ip_header() + ECHO_HEADER + self.size
    }
}

/// Path MTU discovery, by the names that ping's `-M` has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fragmentation {
    /// The DF flag is set, and what is too long for the known path MTU is not sent.
    Do,
    /// The kernel discovers the path MTU, and fragments what is longer.
    Want,
    /// Routers may fragment: the DF flag is not set.
    Dont,
    /// The DF flag is set, and the known path MTU is ignored.
    Probe,
}
