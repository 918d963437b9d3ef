//! The only place where this crate reads a clock.

use std::time::Instant;

/// The present moment of the monotonic clock.
#[must_use]
pub fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "deadlines of tests against real programs"
    )]
    Instant::now()
}

/// Wall time, to compare with times of files.
#[must_use]
#[allow(
    clippy::disallowed_methods,
    reason = "the only place in which the test bed reads wall time"
)]
pub fn wall() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
