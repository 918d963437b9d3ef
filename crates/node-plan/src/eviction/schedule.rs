//! When to measure again: rarely while nothing changes, and soon when a threshold comes near.

use std::time::Duration;

use super::{EvictionPolicy, EvictionRound, EvictionThreshold, ResourceLevels};

/// Longest time between two measurements (kubelet: `evictionMonitoringPeriod`).
const LONGEST: Duration = Duration::from_secs(10);
/// Shortest time between two measurements, however fast a resource runs out.
const SHORTEST: Duration = Duration::from_millis(200);

/// The times of measurements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuringSchedule {
    last: Option<(Duration, ResourceLevels)>,
}

impl MeasuringSchedule {
    /// The time until the next measurement, after one at the monotonic time `now`: half of the time
    /// in which a resource would run out at its present rate, and not later than the end of a grace
    /// period. A node on which nothing changes is measured every ten seconds.
    pub fn next(
        &mut self,
        policy: &EvictionPolicy,
        levels: &ResourceLevels,
        round: &EvictionRound,
        now: Duration,
    ) -> Duration {
        let before = self.last.replace((now, *levels));
        let until_short = before.and_then(|(at, before)| {
            let elapsed = now.saturating_sub(at);
            let each = policy.thresholds.iter();
            each.filter_map(|one| until_met(one, &before, levels, elapsed))
                .min()
        });
        let half = until_short.map(|left| (left / 2).max(SHORTEST));
        [half, round.next_grace_end]
            .into_iter()
            .flatten()
            .fold(LONGEST, Duration::min)
    }
}

/// The time until a threshold is met if its level falls as it did in the last `elapsed`; `None` if
/// it is met already, or does not fall.
#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate from two measurements"
)]
fn until_met(
    threshold: &EvictionThreshold,
    before: &ResourceLevels,
    now: &ResourceLevels,
    elapsed: Duration,
) -> Option<Duration> {
    let (before, now) = (before.of(threshold.signal)?, now.of(threshold.signal)?);
    let left = now
        .available
        .checked_sub(threshold.value.of(now.capacity))?;
    let fallen = before.available.checked_sub(now.available)?;
    if fallen == 0 {
        return None;
    }
    let seconds = elapsed.as_secs_f64() * left as f64 / fallen as f64;
    Duration::try_from_secs_f64(seconds).ok()
}
