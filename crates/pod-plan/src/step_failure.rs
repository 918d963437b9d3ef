//! A step that failed, and when it is tried again.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::after;

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFailure {
    /// The waiting reason that the kubelet reports, such as `ErrImagePull`.
    pub reason: Box<str>,
    /// What went wrong.
    pub message: Box<str>,
    /// When it failed.
    pub at: Timestamp,
    /// Back-off before the next attempt.
    pub delay: Duration,
    /// Key of the definition that was tried; another definition is tried at once.
    pub key: Box<str>,
}

/// Tolerated difference between the clocks of the runtime and the agent.
const CLOCK_SKEW: Duration = Duration::from_secs(1);

impl StepFailure {
    /// When the next attempt may begin.
    #[must_use]
    pub fn retry_at(&self) -> Timestamp {
        after(self.at, self.delay)
    }

    /// When the next attempt may begin; `None` if it may begin now.
    #[must_use]
    pub(crate) fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        backoff_end(self.at, self.delay, now)
    }
}

/// The end of a back-off that began at `at`; `None` if it is over. After the wall clock was set
/// back, `at` lies in the future and the real age is unknown: the back-off then counts as over, as
/// it could last for hours otherwise. The clocks of other processes may be slightly ahead.
pub(crate) fn backoff_end(at: Timestamp, delay: Duration, now: Timestamp) -> Option<Timestamp> {
    let until = after(at, delay);
    (until > now && at <= after(now, CLOCK_SKEW)).then_some(until)
}
