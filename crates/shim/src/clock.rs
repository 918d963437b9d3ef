//! The wall clock, read in this module only.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time now, in nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate where the wall clock is read"
)]
pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
