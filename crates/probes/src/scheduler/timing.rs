//! The times of attempts, and the detection of late ones. Reads no clock.

use std::{
    hash::{DefaultHasher, Hash, Hasher as _},
    time::Duration,
};

use jiff::Timestamp;
use rubelet_base::PodUid;
use rubelet_pod_plan::ProbeKind;

/// A timer that fires later than this shows that the process was stopped or starved.
const STALLED: Duration = Duration::from_millis(250);
/// An attempt that begins later than this after it was due was delayed by an overload of the agent.
const OVERDUE: Duration = Duration::from_secs(1);

/// The delay of the first attempt. `initialDelaySeconds` counts from the start of
/// the container; a start that lies in the future, because the wall clock was set back, counts as
/// now. `phase` always applies.
pub(super) fn first(
    now: Timestamp,
    started_at: Timestamp,
    initial_delay: Duration,
    phase: Duration,
) -> Duration {
    let runs = Duration::try_from(now.duration_since(started_at)).unwrap_or_default();
    initial_delay.saturating_sub(runs).max(phase)
}

/// A part of the period that differs from probe to probe and stays the same for each: the probes of
/// all containers that an agent finds running spread over it.
pub(super) fn phase(uid: &PodUid, container: &str, kind: ProbeKind, period: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    (uid, container, kind).hash(&mut hasher);
    // The upper half of the hash as a fraction.
    let part = (hasher.finish() >> 32) as f64 / 4_294_967_296.0;
    period.mul_f64(part)
}

/// The delay of the next attempt, `since` after the last one was due: until the next point of the
/// grid. Points that a slow attempt missed are skipped.
pub(super) fn next(since: Duration, period: Duration) -> Duration {
    let nanos = since.as_nanos() % period.as_nanos().max(1);
    // Less than a period, which has at most 2^31 seconds.
    period - Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(period)
}

/// An attempt that did not pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsuccessfulAttempt {
    /// Delay of its start after it was due.
    pub(super) waited: Duration,
    /// How long after it began this process saw that it was over, of time that the process measured
    /// itself.
    pub(super) took: Duration,
    /// Its timeout.
    pub(super) timeout: Duration,
    /// True on a timeout; false for a failed response.
    pub(super) timed_out: bool,
}

impl UnsuccessfulAttempt {
    /// True if the agent ran it so late that it proves nothing about the container: this process
    /// was stopped or starved during the attempt, or began it late and got no response.
    pub(super) fn is_late(&self) -> bool {
        self.took > self.timeout.saturating_add(STALLED) || self.timed_out && self.waited > OVERDUE
    }
}

#[cfg(test)]
mod tests;
