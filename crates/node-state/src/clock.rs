//! The wall clock, read in this module only.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;

/// Returns the wall time, and how long the machine slept. Tests use one that follows tokio's paused
/// clock.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    asleep: Arc<dyn Fn() -> Duration + Send + Sync>,
}

impl Clock {
    /// The host's clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the wall clock is read"
    )]
    pub fn system() -> Self {
        Self {
            now: Arc::new(Timestamp::now),
            asleep: Arc::new(rubelet_host::suspend::asleep),
        }
    }

    /// A clock that follows tokio's, from `start` on.
    #[must_use]
    pub fn following_tokio(start: Timestamp) -> Self {
        let began = tokio::time::Instant::now();
        Self {
            now: Arc::new(move || start.checked_add(began.elapsed()).unwrap_or(Timestamp::MAX)),
            asleep: Arc::new(Duration::default),
        }
    }

    /// A clock whose wall time is `tell` and whose time of sleep is `asleep`.
    #[must_use]
    pub fn telling(
        tell: impl Fn() -> Timestamp + Send + Sync + 'static,
        asleep: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            now: Arc::new(tell),
            asleep: Arc::new(asleep),
        }
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// For how long in all the machine has been suspended. Timers stood still meanwhile.
    #[must_use]
    pub fn asleep(&self) -> Duration {
        (self.asleep)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
