//! The wall clock, read in this module only. Times in the CRI are wall time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970, the form of every time in the CRI.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place of this crate where the wall clock is read"
)]
pub(crate) fn now_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
