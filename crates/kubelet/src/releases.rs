//! Notifies pods that cannot start when another pod has released a resource: a host port, an IP
//! address, user IDs. They retry, whatever the resource was.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts releases of resources. Clones share the count.
#[derive(Debug, Clone)]
pub(crate) struct Releases(Arc<watch::Sender<u64>>);

impl Releases {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Notes that a pod has released a resource.
    pub(crate) fn note(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// Follows releases; level-triggered.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
