//! When a probe is tried, and whether an attempt came too late to count. No clock is read here.

use std::{
    hash::{DefaultHasher, Hash, Hasher as _},
    time::Duration,
};

use jiff::Timestamp;
use rubelet_base::PodUid;
use rubelet_pod_plan::ProbeKind;

/// A timer of this process that fires later than this shows that the process did not get to run.
const STALLED: Duration = Duration::from_millis(250);
/// An attempt that begins later than this after it was due, or after it had to wait that long for
/// its turn, was run in an overload of the agent.
const OVERDUE: Duration = Duration::from_secs(1);

/// How long to wait from now for the first attempt. `initialDelaySeconds` counts from the start of
/// the container; a start that lies in the future, because the wall clock was set back, counts as
/// now. `phase` is waited for in any case.
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

/// How long to wait for the next attempt, `since` after one was due: until the next point of the
/// grid. Points that a slow attempt missed are left out.
pub(super) fn next(since: Duration, period: Duration) -> Duration {
    let nanos = since.as_nanos() % period.as_nanos().max(1);
    // Less than a period, which has at most 2^31 seconds.
    period - Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(period)
}

/// An attempt that did not pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed {
    /// How long after it was due it began.
    pub(super) waited: Duration,
    /// How long after it began this process saw that it was over, of time that the process measured
    /// itself.
    pub(super) took: Duration,
    /// How long it was allowed to take.
    pub(super) timeout: Duration,
    /// True if there was no answer in time; false if there was an answer, and a bad one.
    pub(super) timed_out: bool,
}

impl Failed {
    /// True if the agent ran it so late that it proves nothing about the container: this process
    /// was stopped or starved during the attempt, or began it late and got no answer.
    pub(super) fn is_late(&self) -> bool {
        self.took > self.timeout.saturating_add(STALLED) || self.timed_out && self.waited > OVERDUE
    }
}

#[cfg(test)]
mod tests;
