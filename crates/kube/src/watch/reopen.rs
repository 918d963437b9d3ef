//! Opens one watch again on request.

use std::future::pending;

use tokio::sync::watch;

/// Opens the watch of a [`Watcher`](super::Watcher) again, for who knows that it misses something.
#[derive(Debug, Clone, Default)]
pub struct WatchReopener(watch::Sender<u64>);

impl WatchReopener {
    /// The watch that is open ends, and one from the last observed version begins, over a new
    /// connection: the old one may be what is stuck. Other watches stay as they are. Has no effect
    /// while the watcher lists.
    pub fn reopen(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub(super) fn requests(&self) -> ReopenRequests {
        ReopenRequests(Some(self.0.subscribe()))
    }
}

/// The requests to one watcher; a watcher without a reopener gets none.
#[derive(Debug, Clone, Default)]
pub(super) struct ReopenRequests(Option<watch::Receiver<u64>>);

impl ReopenRequests {
    /// The next request. May be dropped while waiting: nothing is lost.
    pub(super) async fn next(&mut self) {
        match &mut self.0 {
            Some(requests) => match requests.changed().await {
                Ok(()) => {}
                Err(_) => pending().await,
            },
            None => pending().await,
        }
    }

    /// Those that come from now on, for a watch that is about to be opened.
    pub(super) fn later(&self) -> Self {
        let mut requests = self.clone();
        if let Some(requests) = &mut requests.0 {
            requests.mark_unchanged();
        }
        requests
    }
}
