//! The addresses of the node, which may change while it runs.

use std::{future::pending, net::IpAddr, sync::Arc};

use tokio::sync::watch;

/// The addresses as they are now, the primary one first; none while the machine has no network. Never a
/// loopback address.
#[derive(Debug, Clone)]
pub struct NodeIps(watch::Receiver<Arc<[IpAddr]>>);

impl NodeIps {
    /// Those that a task keeps up to date.
    #[must_use]
    pub fn following(ips: watch::Receiver<Arc<[IpAddr]>>) -> Self {
        Self(ips)
    }

    /// Those that never change.
    #[must_use]
    pub fn fixed(ips: Vec<IpAddr>) -> Self {
        Self(watch::channel(ips.into()).1)
    }

    /// The addresses now.
    #[must_use]
    pub fn now(&self) -> Arc<[IpAddr]> {
        Arc::clone(&self.0.borrow())
    }

    /// The same as texts.
    #[must_use]
    pub fn texts(&self) -> Vec<Box<str>> {
        let ips = self.0.borrow();
        ips.iter().map(|ip| ip.to_string().into()).collect()
    }

    /// Ends when they change; never if they can't.
    pub async fn changed(&mut self) {
        // Cancel safety: the receiver keeps what was not seen.
        if self.0.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}
