//! Time in the model: tokio's clock, starting at a fixed date so that timestamps look real.

use std::time::Duration;

use tokio::time::Instant;

/// Wall time at the start of a model: 2026-01-01T00:00:00Z, in nanoseconds since 1970.
pub(crate) const EPOCH: i64 = 1_767_225_600_000_000_000;

pub(crate) struct Clock {
    start: Instant,
    last: i64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            last: EPOCH,
        }
    }

    /// Time since the model started.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.start + at
    }

    /// A timestamp of now that is not before any earlier one, but may equal one. Events use it,
    /// because they must not move the timestamps of later objects into the future.
    pub(crate) fn latest(&self) -> i64 {
        wall(self.now()).max(self.last)
    }

    /// A unique timestamp of now, as in a runtime whose clock has nanoseconds.
    pub(crate) fn stamp(&mut self) -> i64 {
        self.last = wall(self.now()).max(self.last + 1);
        self.last
    }
}

/// The wall time, in nanoseconds since 1970, at `at` since the model started.
pub(crate) fn wall(at: Duration) -> i64 {
    i64::try_from(at.as_nanos()).map_or(i64::MAX, |nanos| EPOCH.saturating_add(nanos))
}
