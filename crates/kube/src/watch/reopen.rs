//! Opens one watch again on request.

use std::future::pending;

use tokio::sync::watch;

/// Opens the watch of a [`Watcher`](super::Watcher) again, for who knows that it misses something.
#[derive(Debug, Clone, Default)]
pub struct WatchReopener(watch::Sender<u64>);

impl WatchReopener {
    /// The watch that is open ends, and one from the last observed version begins, over a new
    /// connection: the old one may be what is stuck. Other watches stay as they are. Has no effect
    /// while no watch is open.
    pub fn reopen(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// The requests from now on.
    pub(super) fn requests(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// Waits for the next request; forever where nobody makes any. May be dropped while waiting: nothing
/// is lost.
pub(super) async fn requested(requests: &mut Option<watch::Receiver<u64>>) {
    match requests {
        // The watcher holds the sender, which does not go away.
        Some(requests) => drop(requests.changed().await),
        None => pending().await,
    }
}
