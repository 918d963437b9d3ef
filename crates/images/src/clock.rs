//! The wall clock, read in this module only: for `created at` of images, never for decisions.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate where the wall clock is read"
)]
pub(crate) fn unix_nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
