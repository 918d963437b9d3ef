//! One try of an attempt.

use std::time::Duration;

use crate::report::ProbeReport;

/// The result of one try.
pub(super) struct ProbeTry {
    pub(super) report: ProbeReport,
    /// How long it took by timers of this process alone.
    pub(super) took: Duration,
}
