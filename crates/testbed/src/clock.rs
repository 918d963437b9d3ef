//! The one place where this crate reads a clock.

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
