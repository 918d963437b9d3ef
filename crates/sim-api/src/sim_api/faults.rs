//! Faults, switched while the server runs.

use std::time::Duration;

use jiff::SignedDuration;

use super::SimApi;
use crate::{fault::Rule, state::PodCache};

/// How the server comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restart {
    /// How long nobody listens.
    pub down: Duration,
    /// Forgets the changes so far: older watches get 410 Gone.
    pub lose_history: bool,
}

impl SimApi {
    /// Adds a rule; all rules are asked in the order they were added.
    pub fn add_fault(&self, rule: Rule) {
        self.shared.faults.add(rule);
    }

    /// Removes all rules.
    pub fn clear_faults(&self) {
        self.shared.faults.clear();
    }

    /// Each rule and how often it hit.
    #[must_use]
    pub fn fault_hits(&self) -> Vec<(String, u64)> {
        self.shared.faults.hits()
    }

    /// Sets how far the server's clock is off.
    pub fn set_clock_skew(&self, skew: SignedDuration) {
        self.shared.clock.set_skew(skew);
    }

    /// Forgets the changes so far, as etcd does every five minutes.
    pub fn compact(&self) {
        self.shared.with_store(|store| store.compact());
    }

    /// A part of the server learns nothing of pods from now on, until [`Self::release_pods`]. A pod that is
    /// bound meanwhile is without a node for it, and one that is made is not there: it refuses nodes what
    /// a real server refuses for a moment ([`SimApiConfig::cache_lag`](crate::SimApiConfig::cache_lag)). What is stored, and what watches tell, continues.
    pub fn hold_pods(&self, cache: PodCache) {
        self.shared.hold(cache);
    }

    /// A part of the server knows all pods again.
    pub fn release_pods(&self, cache: PodCache) {
        self.shared.release(cache);
    }

    /// Closes all connections.
    pub fn disconnect(&self) {
        self.shared
            .faults
            .rewire(|wires, newest| wires.closed = newest);
    }

    /// All connections stay open and are never served again, as when a firewall forgets them. New ones
    /// are served.
    pub fn hang_connections(&self) {
        self.shared
            .faults
            .rewire(|wires, newest| wires.hung = newest);
    }

    /// While frozen, connections are taken and nothing is read or answered.
    pub fn set_frozen(&self, frozen: bool) {
        self.shared.faults.rewire(|wires, _| wires.frozen = frozen);
    }

    /// While down, all connections are closed and none is taken.
    pub fn set_down(&self, down: bool) {
        if !down {
            self.shared.came_back();
        }
        self.shared.faults.rewire(|wires, newest| {
            wires.down = down;
            wires.closed = newest;
        });
    }

    /// Stops and comes back with the same objects on the same address; returns once it listens again.
    pub async fn restart(&self, restart: Restart) {
        let mut listening = self.shared.faults.listening.subscribe();
        self.set_down(true);
        // The sender lives as long as this server.
        let _ = listening.wait_for(|listening| !listening).await;
        tokio::time::sleep(restart.down).await;
        if restart.lose_history {
            self.compact();
        }
        self.set_down(false);
        let _ = listening.wait_for(|listening| *listening).await;
    }
}
