//! The wall clock, read in this module only.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;

/// The wall time and the time that the machine was suspended. Tests use a clock that follows
/// tokio's paused clock.
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
        reason = "the one place of this crate where the wall clock is read"
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

    /// A clock with these sources of the wall time and of the suspended time.
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

    /// The total time that the machine was suspended. Timers do not advance meanwhile.
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
