//! CPU usage per second, from two readings of a counter.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;

/// Readings closer than this say little: the kernel accounts in ticks of up to 10 ms.
const SHORTEST: Duration = Duration::from_millis(500);

/// An average over a longer time is not the current usage.
const LONGEST: Duration = Duration::from_secs(300);

/// A reading of a counter, and the rate that was computed from it.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Timestamp,
    usage_ns: u64,
    nano_cores: Option<u64>,
}

/// The last reading of each object.
#[derive(Debug, Default)]
pub(crate) struct CpuRates {
    before: HashMap<Arc<str>, Reading>,
    now: HashMap<Arc<str>, Reading>,
}

impl CpuRates {
    /// Adds a reading of the object `key`; returns its usage in nanoseconds per second since the
    /// reading before.
    pub(crate) fn add(&mut self, key: &Arc<str>, at: Timestamp, usage_ns: u64) -> Option<u64> {
        let read = Reading {
            at,
            usage_ns,
            nano_cores: None,
        };
        let next = match self.before.get(key) {
            None => read,
            Some(before) => next(before, read),
        };
        self.now.insert(Arc::clone(key), next);
        next.nano_cores
    }

    /// Ends a round of readings: objects without one are forgotten.
    pub(crate) fn end_round(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

/// The reading to compare the next one with. A counter that went backwards belongs to another
/// object of the same name; a clock that stepped says nothing about a duration.
fn next(before: &Reading, read: Reading) -> Reading {
    let elapsed = Duration::try_from(read.at.duration_since(before.at));
    let (Ok(elapsed), Some(used)) = (elapsed, read.usage_ns.checked_sub(before.usage_ns)) else {
        return read;
    };
    if elapsed < SHORTEST {
        return *before;
    }
    let per_second = u128::from(used) * 1_000_000_000 / elapsed.as_nanos();
    Reading {
        nano_cores: u64::try_from(per_second)
            .ok()
            .filter(|_| elapsed <= LONGEST),
        ..read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + millis).unwrap()
    }

    /// Adds readings of one object, given as milliseconds and nanoseconds; returns the last rate.
    fn rate(readings: &[(i64, u64)]) -> Option<u64> {
        let mut rates = CpuRates::default();
        let key = "a".into();
        let mut last = None;
        for (millis, usage) in readings {
            last = rates.add(&key, at(*millis), *usage);
            rates.end_round();
        }
        last
    }

    #[test]
    fn a_rate_needs_two_readings_of_the_same_counter() {
        const SECOND: u64 = 1_000_000_000;
        for (readings, expected) in [
            (&[(0, 5)][..], None),
            (&[(0, 0), (2000, SECOND)], Some(SECOND / 2)),
            (&[(0, 0), (1000, 0)], Some(0)),
            // Too close: the reading before is kept, with its rate.
            (&[(0, 0), (1000, SECOND), (1001, 9 * SECOND)], Some(SECOND)),
            (&[(0, 0), (1, SECOND), (1000, SECOND)], Some(SECOND)),
            (&[(0, 0), (1, SECOND)], None),
            // Another container of that name.
            (&[(0, SECOND), (1000, 0)], None),
            // The clock stepped back, or nobody asked for long.
            (&[(5000, 0), (0, SECOND)], None),
            (&[(0, 0), (301_000, SECOND)], None),
            // Hostile numbers of a runtime do not overflow.
            (&[(0, 0), (500, u64::MAX)], None),
        ] {
            assert_eq!(rate(readings), expected, "{readings:?}");
        }
    }

    #[test]
    fn an_object_that_is_gone_is_forgotten() {
        let mut rates = CpuRates::default();
        let key = "a".into();
        rates.add(&key, at(0), 0);
        rates.end_round();
        rates.end_round();
        assert_eq!(rates.add(&key, at(1000), 1), None);
        assert!(rates.before.is_empty());
    }
}
