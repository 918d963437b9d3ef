//! Faults, controlled while the server runs.

use std::time::Duration;

use jiff::SignedDuration;

use super::SimApi;
use crate::{fault::Rule, state::PodCache};

/// Options of a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restart {
    /// How long the server is down.
    pub down: Duration,
    /// Compacts the history: older watches get 410 Gone.
    pub lose_history: bool,
}

impl SimApi {
    /// Adds a rule; rules are checked in the order in which they were added.
    pub fn add_fault(&self, rule: Rule) {
        self.shared.faults.add(rule);
    }

    /// Removes all rules.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Each rule with the number of its faults.
    #[must_use]
    pub fn fault_hits(&self) -> Vec<(String, u64)> {
        self.shared.faults.hits()
    }

    /// Sets the skew of the server's clock.
    pub fn set_clock_skew(&self, skew: SignedDuration) {
        self.shared.clock.set_skew(skew);
    }

    /// Compacts the history, as the API server does with etcd every five minutes.
    pub fn compact(&self) {
        self.shared.with_store(|store| store.compact());
    }

    /// Freezes a pod cache of the server until [`Self::release_pods`]. In it a pod that is bound later has no
    /// node, and a new one does not exist: the server denies nodes what a real server denies for a moment
    /// ([`SimApiConfig::cache_lag`](crate::SimApiConfig::cache_lag)). Storage and watches are not affected.
    pub fn hold_pods(&self, cache: PodCache) {
        self.shared.hold(cache);
    }

    /// Unfreezes a pod cache.
    pub fn release_pods(&self, cache: PodCache) {
        self.shared.release(cache);
    }

    /// Closes all connections.
    pub fn disconnect(&self) {
        self.shared
            .faults
            .update_connections(|connection_faults, newest| connection_faults.closed = newest);
    }

    /// All connections stay open but are not served any more, as if a firewall had dropped their
    /// state. New ones are served.
    pub fn hang_connections(&self) {
        self.shared
            .faults
            .update_connections(|connection_faults, newest| connection_faults.hung = newest);
    }

    /// While frozen, connections are accepted, but nothing is read or sent.
    pub fn set_frozen(&self, frozen: bool) {
        self.shared
            .faults
            .update_connections(|connection_faults, _| connection_faults.frozen = frozen);
    }

    /// While down, all connections are closed and none is accepted.
    pub fn set_down(&self, down: bool) {
        if !down {
            self.shared.mark_restarted();
        }
        self.shared
            .faults
            .update_connections(|connection_faults, newest| {
                connection_faults.down = down;
                connection_faults.closed = newest;
            });
    }

    /// Restarts with the same objects on the same address; returns when it listens again.
    pub async fn restart(&self, restart: Restart) {
        let mut listening = self.shared.faults.listening.subscribe();
        self.set_down(true);
        // The sender lives as long as the server.
        let _ = listening.wait_for(|listening| !listening).await;
        tokio::time::sleep(restart.down).await;
        if restart.lose_history {
            self.compact();
        }
        self.set_down(false);
        let _ = listening.wait_for(|listening| *listening).await;
    }
}
