//! Rubelet's own options: the section `rubelet` of the configuration file, which no kubelet knows.

use crate::field::{Described, Field, Kind, section};
use crate::go_duration;
use std::time::Duration;

section! {
    /// Options that only Rubelet has. They stand under the key `rubelet` in the same file as the
    /// kubelet's, so that one file is enough.
    pub struct RubeletOptions {
        /// Path of the unix socket on which `rubelet get`, `logs` and the others talk to the agent.
        socket: String = "/run/rubelet/rubelet.sock".to_owned(), "socket", Unset, Works;
        /// Group that may use the socket beside root. Empty means root only.
        socket_group: String = String::new(), "socketGroup", Unset, Works;
        /// How often the runtime is asked for all of its containers.
        #[serde(with = "go_duration")]
        relist_period: Duration = Duration::from_secs(1), "relistPeriod", Unset, Works;
        /// How many sandboxes and containers the runtime starts or stops at the same time. 0 means
        /// four for each processor.
        runtime_calls_at_once: u32 = 0, "runtimeCallsAtOnce", Counts, Works;
    }
}

impl RubeletOptions {
    /// The table of these fields.
    pub const FIELDS: &'static [Field] = match Self::KIND {
        Kind::Section(fields) => fields,
        _ => &[],
    };
}
