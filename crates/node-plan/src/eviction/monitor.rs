//! From measured levels to the shortages that call for an eviction, and to pressure.

use std::{collections::BTreeMap, time::Duration};

use super::{
    EvictionPolicy, EvictionThreshold, Pressure, ResourceLevel, ResourceLevels,
    pressure::LastShortages,
};

/// A threshold that was crossed for its whole grace period, and the level now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shortage {
    /// The threshold.
    pub threshold: EvictionThreshold,
    /// The measured level.
    pub level: ResourceLevel,
}

/// The result of one measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EvictionRound {
    /// What the conditions of the node show, and admission considers.
    pub pressure: Pressure,
    /// The shortages for which something must be freed now, the first to handle first.
    pub due: Vec<Shortage>,
    /// The time until the next grace period ends, if the level stays as it is; `None` if no grace
    /// period runs.
    pub next_grace_end: Option<Duration>,
}

/// A threshold that is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MetThreshold {
    since: Duration,
    /// True once it was due: it stays met until the minimum reclaim is available too.
    was_due: bool,
}

/// The state between measurements (kubelet: `managerImpl`). Times count from any fixed moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EvictionMonitor {
    /// By the place of the threshold in the policy.
    met: BTreeMap<usize, MetThreshold>,
    last: LastShortages,
}

impl EvictionMonitor {
    /// Takes the levels measured at the monotonic time `now`.
    ///
    /// A signal without a level keeps its state, but nothing is evicted for it: a file system that
    /// does not respond neither ends a shortage nor proves one.
    pub fn observe(
        &mut self,
        policy: &EvictionPolicy,
        levels: &ResourceLevels,
        now: Duration,
    ) -> EvictionRound {
        let before = std::mem::take(&mut self.met);
        let mut round = EvictionRound::default();
        for (place, threshold) in policy.thresholds.iter().enumerate() {
            let known = before.get(&place).copied();
            let level = levels.of(threshold.signal);
            let is_met = match (level, known) {
                (None, known) => known.is_some(),
                (Some(level), Some(known)) if known.was_due => threshold.is_unresolved(level),
                (Some(level), _) => threshold.is_met(level),
            };
            if !is_met {
                continue;
            }
            self.last.saw(threshold.signal.condition(), now);
            let mut met = known.unwrap_or(MetThreshold {
                since: now,
                was_due: false,
            });
            let left = threshold
                .grace
                .saturating_sub(now.saturating_sub(met.since));
            match level {
                Some(level) if left.is_zero() => {
                    met.was_due = true;
                    round.due.push(Shortage {
                        threshold: *threshold,
                        level,
                    });
                }
                _ if !left.is_zero() => {
                    let next = round.next_grace_end.map_or(left, |next| next.min(left));
                    round.next_grace_end = Some(next);
                }
                _ => {}
            }
            self.met.insert(place, met);
        }
        round.pressure = self.last.pressure(policy.transition, now);
        round
    }
}
