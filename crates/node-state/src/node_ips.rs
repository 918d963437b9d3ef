//! The addresses of the node, which may change while it runs.

use std::{future::pending, net::IpAddr, sync::Arc};

use tokio::sync::watch;

/// The current addresses, the primary one first; none while the machine has no network. Never a
/// loopback address.
#[derive(Debug, Clone)]
pub struct NodeIps(watch::Receiver<Arc<[IpAddr]>>);

impl NodeIps {
    /// Addresses that a task updates.
    #[must_use]
    pub fn following(ips: watch::Receiver<Arc<[IpAddr]>>) -> Self {
        Self(ips)
    }

    /// Addresses that never change.
    #[must_use]
    pub fn fixed(ips: Vec<IpAddr>) -> Self {
        Self(watch::channel(ips.into()).1)
    }

    /// The current addresses.
    #[must_use]
    pub fn now(&self) -> Arc<[IpAddr]> {
        Arc::clone(&self.0.borrow())
    }

    /// The current addresses as text.
    #[must_use]
    pub fn texts(&self) -> Vec<Box<str>> {
        let ips = self.0.borrow();
        ips.iter().map(|ip| ip.to_string().into()).collect()
    }

    /// Resolves when they change; never if they are fixed.
    pub async fn changed(&mut self) {
        // Cancel safety: the receiver keeps an unseen change.
        if self.0.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}
