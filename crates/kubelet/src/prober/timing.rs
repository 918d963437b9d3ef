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
    /// True if the agent ran it so late that it says nothing of the container: this process was
    /// stopped or starved while the attempt was under way, or began it late and got no answer.
    pub(super) fn is_late(&self) -> bool {
        self.took > self.timeout.saturating_add(STALLED) || self.timed_out && self.waited > OVERDUE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_initial_delay_counts_from_the_start_of_the_container() {
        let at = |second| Timestamp::from_second(second).unwrap();
        // Started at, delay, phase; wait at second 1000.
        for (started, delay, phase, wait) in [
            (1000, 0, 0, 0),
            (1000, 5_000, 0, 5_000),
            (997, 5_000, 0, 2_000),
            (900, 5_000, 0, 0),
            (900, 5_000, 700, 700),
            (997, 5_000, 700, 2_000),
            (997, 5_000, 3_000, 3_000),
            // The wall clock was set back by an hour.
            (4600, 5_000, 0, 5_000),
            (4600, 0, 0, 0),
        ] {
            let wait_now = first(at(1000), at(started), ms(delay), ms(phase));
            assert_eq!(wait_now, ms(wait), "{started} {delay} {phase}");
        }
    }

    #[test]
    fn attempts_stay_on_the_grid_and_leave_out_what_they_missed() {
        for (since, period, wait) in [
            (0, 1_000, 1_000),
            (1, 1_000, 999),
            (999, 1_000, 1),
            (1_000, 1_000, 1_000),
            (1_500, 1_000, 500),
            (10_250, 1_000, 750),
            (5, 2_147_483_647_000, 2_147_483_646_995),
        ] {
            assert_eq!(next(ms(since), ms(period)), ms(wait), "{since} {period}");
        }
    }

    #[test]
    fn phases_are_spread_evenly_and_stay_the_same() {
        let period = Duration::from_secs(10);
        let mut slots = [0; 10];
        for pod in 0..1000 {
            let uid = PodUid::from(format!("uid-{pod}"));
            let phase = phase(&uid, "app", ProbeKind::Liveness, period);
            slots[usize::try_from(phase.as_secs()).unwrap()] += 1;
        }
        assert!(
            slots.iter().all(|count| (70..=130).contains(count)),
            "{slots:?}"
        );
        let uid = PodUid::from("uid");
        let of = |kind| phase(&uid, "app", kind, period);
        assert_eq!(of(ProbeKind::Liveness), of(ProbeKind::Liveness));
        assert_ne!(of(ProbeKind::Liveness), of(ProbeKind::Readiness));
    }

    #[test]
    fn a_failure_is_late_only_where_the_agent_was() {
        let bad = false;
        let none = true;
        // Waited, took, timeout, timed out; late.
        for (waited, took, timeout, timed_out, late) in [
            (0, 1_000, 1_000, none, false),
            (10, 1_050, 1_000, none, false),
            (1_000, 1_250, 1_000, none, false),
            // The process stood still during the attempt, whatever it found when it went on.
            (0, 1_251, 1_000, none, true),
            (0, 60_000, 1_000, none, true),
            (0, 60_000, 1_000, bad, true),
            (0, 60_000, 60_000, none, false),
            (0, 60_251, 60_000, none, true),
            // It began late. A bad answer is one all the same.
            (1_001, 1_000, 1_000, none, true),
            (30_000, 1_000, 1_000, none, true),
            (30_000, 1_000, 1_000, bad, false),
            (0, 3, 1_000, bad, false),
        ] {
            let failed = Failed {
                waited: ms(waited),
                took: ms(took),
                timeout: ms(timeout),
                timed_out,
            };
            assert_eq!(failed.is_late(), late, "{failed:?}");
        }
    }
}
