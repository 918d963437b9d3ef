//! The wall clock: needed for the expiry of credentials only. Read in this module only.

use std::sync::Arc;

use jiff::Timestamp;

/// Returns the wall time.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The host's clock.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate where the wall clock is read"
)]
pub fn system() -> WallClock {
    Arc::new(Timestamp::now)
}
