//! Tells pods that cannot start when another pod has released something: a port of the host, an
//! address, user IDs. What it was they find out by trying.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts releases. Clones share the count.
#[derive(Debug, Clone)]
pub(crate) struct Releases(Arc<watch::Sender<u64>>);

impl Releases {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Notes that a pod has released something.
    pub(crate) fn note(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Follows releases; level-triggered.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
