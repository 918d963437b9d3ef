//! The addresses of this machine, followed.

use std::{net::IpAddr, sync::Arc, time::Duration};

use rubelet_host::address;
use rubelet_kubelet::node_ips::NodeIps;
use tokio::{sync::watch, time::sleep};
use tracing::{info, warn};

/// How often the machine is asked, as the kubelet computes the node's status.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The node's addresses, and who changes them.
#[derive(Debug, Clone)]
pub(crate) struct FollowedIps {
    ips: Arc<watch::Sender<Arc<[IpAddr]>>>,
    /// They were given, and stay.
    given: bool,
}

impl FollowedIps {
    /// Those of `--node-ip`, else those of the machine now; none without a network.
    pub(super) fn look(given: Vec<IpAddr>) -> Self {
        let given: Vec<IpAddr> = given
            .into_iter()
            .filter(|ip| !ip.is_unspecified())
            .collect();
        let (ips, is_given) = match given.is_empty() {
            true => (address::outward(), false),
            false => (given, true),
        };
        if ips.is_empty() {
            warn!("This machine has no address yet; pods that ask for it wait for one");
        }
        Self {
            ips: Arc::new(watch::Sender::new(ips.into())),
            given: is_given,
        }
    }

    pub(crate) fn subscribe(&self) -> NodeIps {
        NodeIps::following(self.ips.subscribe())
    }

    /// These are the node's addresses now. Of a machine that lost its network the last ones stay: its
    /// pods had them.
    pub(crate) fn tell(&self, now: &[IpAddr]) {
        let changed = self.ips.send_if_modified(|ips| {
            let changed = !now.is_empty() && **ips != *now;
            if changed {
                *ips = now.into();
            }
            changed
        });
        if changed {
            info!(addresses = ?now, "The addresses of this machine changed");
        }
    }

    /// Follows the machine for ever; addresses that were given stay. A node of a cluster follows its node object instead.
    pub(crate) async fn follow(self) {
        if self.given {
            return;
        }
        loop {
            sleep(LOOK_EVERY).await;
            self.tell(&address::outward());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_machine_and_are_never_loopback() {
        let found = FollowedIps::look(Vec::new());
        assert!(found.subscribe().now().iter().all(|ip| !ip.is_loopback()));
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let ips = FollowedIps::look(vec![ip("192.0.2.1")]);
        let seen = ips.subscribe();
        ips.tell(&[ip("192.0.2.2"), ip("2001:db8::2")]);
        assert_eq!(*seen.texts(), ["192.0.2.2".into(), "2001:db8::2".into()]);
        ips.tell(&[]);
        assert_eq!(seen.texts().len(), 2, "a lost network is no other address");
    }
}
