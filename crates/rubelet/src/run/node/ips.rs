//! The current addresses of this machine.

use std::{net::IpAddr, sync::Arc, time::Duration};

use rubelet_host::address;
use rubelet_node_state::node_ips::NodeIps;
use tokio::{sync::watch, time::sleep};
use tracing::{info, warn};

/// Poll interval, the same as the kubelet's for the node's status.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The node's addresses, and their sender.
#[derive(Debug, Clone)]
pub(crate) struct FollowedIps {
    ips: Arc<watch::Sender<Arc<[IpAddr]>>>,
    /// They were configured, and never change.
    given: bool,
}

impl FollowedIps {
    /// The addresses of `--node-ip`, else the machine's current ones; none without a network.
    pub(super) fn detect(given: Vec<IpAddr>) -> Self {
        let given: Vec<IpAddr> = given
            .into_iter()
            .filter(|ip| !ip.is_unspecified())
            .collect();
        let (ips, is_given) = match given.is_empty() {
            true => (address::outward(), false),
            false => (given, true),
        };
        if ips.is_empty() {
            warn!("The node has no IP address yet; pods that need one wait for it");
        }
        Self {
            ips: Arc::new(watch::Sender::new(ips.into())),
            given: is_given,
        }
    }

    pub(crate) fn subscribe(&self) -> NodeIps {
        NodeIps::following(self.ips.subscribe())
    }

    /// Sets the node's current addresses. If a machine loses its network the last ones stay: its
    /// pods had them.
    pub(crate) fn set(&self, now: &[IpAddr]) {
        let changed = self.ips.send_if_modified(|ips| {
            let changed = !now.is_empty() && **ips != *now;
            if changed {
                *ips = now.into();
            }
            changed
        });
        if changed {
            info!(addresses = ?now, "The addresses of the node changed");
        }
    }

    /// Polls the machine forever; configured addresses stay. A node of a cluster uses its node
    /// object instead.
    pub(crate) async fn follow(self) {
        if self.given {
            return;
        }
        loop {
            sleep(POLL_INTERVAL).await;
            self.set(&address::outward());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_machine_and_are_never_loopback() {
        let found = FollowedIps::detect(Vec::new());
        assert!(found.subscribe().now().iter().all(|ip| !ip.is_loopback()));
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let ips = FollowedIps::detect(vec![ip("192.0.2.1")]);
        let seen = ips.subscribe();
        ips.set(&[ip("192.0.2.2"), ip("2001:db8::2")]);
        assert_eq!(*seen.texts(), ["192.0.2.2".into(), "2001:db8::2".into()]);
        ips.set(&[]);
        assert_eq!(seen.texts().len(), 2, "a lost network is no other address");
    }
}
