//! The idle timeout of a connection.

use std::{future::pending, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Time of a session that is idle to tell its client so, before the connection is closed. Its process has ended by
/// then; a busy machine needs seconds for hundreds of sessions that become idle at once.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Resolves once `used` is that long ago; never for zero.
pub(crate) async fn idle(used: &Mutex<Instant>, after: Duration) {
    if after.is_zero() {
        return pending().await;
    }
    loop {
        let until = *used.lock() + after;
        if until <= Instant::now() {
            return;
        }
        sleep_until(until).await;
    }
}

/// The idle timeout of the connection itself: for a client that does not read why its session ended.
pub(crate) fn with_grace(after: Duration) -> Duration {
    match after.is_zero() {
        true => after,
        false => after + GRACE,
    }
}
