//! One try of an attempt.

use std::time::Duration;

use super::net::NetReport;

/// The result of one try.
pub(super) struct ProbeTry {
    pub(super) report: NetReport,
    /// How long it took by timers of this process alone.
    pub(super) took: Duration,
}
