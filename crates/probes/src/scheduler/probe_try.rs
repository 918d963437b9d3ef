//! One try of an attempt.

use std::time::Duration;

use crate::report::ProbeReport;

/// The result of one try.
pub(super) struct ProbeTry {
    pub(super) report: ProbeReport,
    /// Its duration by the timers of this process.
    pub(super) took: Duration,
}
