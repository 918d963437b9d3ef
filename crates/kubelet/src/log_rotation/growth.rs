//! Computes from the growth of logs when to check them again. No effects.

use std::{collections::HashMap, time::Duration};

use rubelet_base::ContainerId;

/// Sizes of current log files in bytes.
pub(super) type LogSizes = HashMap<ContainerId, u64>;

/// Shortest time between two checks: a log that grows by 100 MB/s is rotated once a second.
const SHORTEST: Duration = Duration::from_secs(1);

/// Sizes at two checks.
#[derive(Debug)]
pub(super) struct LogGrowth<'a> {
    /// Sizes at the previous check. A log that is not in it was empty.
    pub(super) before: &'a LogSizes,
    /// Sizes now.
    pub(super) now: &'a LogSizes,
    /// Time between the two.
    pub(super) between: Duration,
    /// The size at which a log is rotated.
    pub(super) max_bytes: u64,
}

impl LogGrowth<'_> {
    /// Time until the first log reaches its maximum size, if all grow as before; at most
    /// `interval`. Logs that are too large already are about to be rotated, and start empty.
    pub(super) fn next_look(&self, interval: Duration) -> Duration {
        let until_full = self.now.iter().filter_map(|(id, size)| {
            let before = self.before.get(id).copied().unwrap_or_default();
            // A log that became smaller was rotated by the runtime, or truncated.
            let grown = size.checked_sub(before).unwrap_or(*size);
            let missing = match self.max_bytes.saturating_sub(*size) {
                0 => self.max_bytes,
                missing => missing,
            };
            (grown > 0).then(|| self.between.mul_f64(fraction(missing, grown)))
        });
        let soonest = until_full.min().unwrap_or(interval);
        soonest.max(SHORTEST).min(interval)
    }
}

/// A quotient, bounded so that a duration can be multiplied by it.
#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate does not get better by the last bits"
)]
fn fraction(missing: u64, grown: u64) -> f64 {
    (missing as f64 / grown as f64).min(1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn next(logs: &[(&str, u64, u64)], between: u64) -> Duration {
        let side = |pick: fn(&(&str, u64, u64)) -> u64| -> LogSizes {
            let sizes = logs.iter();
            sizes
                .map(|log| (ContainerId::from(log.0), pick(log)))
                .collect()
        };
        let (before, now) = (side(|log| log.1), side(|log| log.2));
        let growth = LogGrowth {
            before: &before,
            now: &now,
            between: Duration::from_secs(between),
            max_bytes: 1000,
        };
        growth.next_look(INTERVAL)
    }

    #[test]
    fn logs_that_do_not_grow_are_checked_each_interval() {
        assert_eq!(next(&[], 10), INTERVAL);
        assert_eq!(next(&[("a", 999, 999), ("b", 0, 0)], 10), INTERVAL);
        assert_eq!(next(&[("a", 100, 110)], 10), INTERVAL);
    }

    #[test]
    fn the_log_that_is_full_first_decides() {
        let seconds = Duration::from_secs;
        assert_eq!(next(&[("a", 0, 500), ("b", 100, 110)], 2), seconds(2));
        assert_eq!(next(&[("a", 0, 990)], 10), seconds(1), "not all the time");
        // Full now: it begins at nothing.
        assert_eq!(next(&[("a", 0, 2000)], 10), seconds(5));
        // The runtime rotated it itself.
        assert_eq!(next(&[("a", 900, 500)], 4), seconds(4));
        assert_eq!(next(&[("a", 0, 1)], u64::MAX >> 30), INTERVAL);
    }
}
