//! The CRI traits, call by call.

mod events;
mod exec;
mod images;
mod request_subject;
mod runtime;

use std::time::Duration;

/// The length of time in a request; a negative one counts as zero.
fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
