//! The server's clock: wall time at the start, then tokio's time, so that paused time works, with a
//! skew that a test sets.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The server's wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    started_at: Timestamp,
    started: Instant,
    skew_ms: AtomicI64,
}

impl Clock {
    /// A clock that starts at `start`, or at the machine's time.
    pub(crate) fn new(start: Option<Timestamp>) -> Self {
        Self {
            started_at: start.unwrap_or_else(machine_now),
            started: Instant::now(),
            skew_ms: AtomicI64::new(0),
        }
    }

    /// Now, with the skew.
    pub(crate) fn now(&self) -> Timestamp {
        self.started_at
            + SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX)
            + SignedDuration::from_millis(self.skew_ms.load(Ordering::Relaxed))
    }

    /// Time since the server was created, without the skew.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Sets the skew of the clock.
    pub(crate) fn set_skew(&self, skew: SignedDuration) {
        let ms = i64::try_from(skew.as_millis()).unwrap_or(i64::MAX);
        self.skew_ms.store(ms, Ordering::Relaxed);
    }
}

/// The machine's time.
pub(crate) fn machine_now() -> Timestamp {
    #[expect(
        clippy::disallowed_methods,
        reason = "the model reads wall time once, when it starts"
    )]
    Timestamp::now()
}

/// A time as in metadata: RFC 3339, whole seconds, UTC.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time as in leases and events: RFC 3339 with microseconds, UTC.
pub(crate) fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
