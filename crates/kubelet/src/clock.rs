//! The wall clock, read in this module only.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

/// Tells the wall time. Tests give one that follows tokio's paused clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The host's clock.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the wall clock is read"
    )]
    pub fn system() -> Self {
        Self(Arc::new(Timestamp::now))
    }

    /// A clock that follows tokio's, from `start` on.
    #[must_use]
    pub fn following_tokio(start: Timestamp) -> Self {
        let began = tokio::time::Instant::now();
        Self(Arc::new(move || {
            start.checked_add(began.elapsed()).unwrap_or(Timestamp::MAX)
        }))
    }

    /// A clock that tells what `tell` says.
    #[cfg(test)]
    pub(crate) fn telling(tell: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
