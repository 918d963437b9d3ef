//! Ports of the host that pods hold. A pod whose port another one still holds waits for its release
//! instead of failing: it begins within milliseconds of it, and its back-off does not grow.
//!
//! The runtime decides in the end. Here is only what this agent's pods hold, whatever the runtime.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};
use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
use rubelet_node_plan::HostPort;

use crate::releases::Releases;

/// A port that another pod holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortHeld {
    port: HostPort,
    by: PodName,
}

impl fmt::Display for PortHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, by } = self;
        write!(f, "host port {port} is held by pod {by}")?;
        write!(f, "; this pod starts when that one has released it")
    }
}

type Holders = BTreeMap<PodUid, (PodName, Vec<HostPort>)>;

/// The ports that pods hold. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct HostPorts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    holders: Mutex<Holders>,
    releases: Releases,
}

/// The ports of one pod, released when this is dropped.
#[derive(Debug)]
pub(crate) struct HeldPorts {
    shared: Weak<Shared>,
    uid: PodUid,
}

impl Drop for HeldPorts {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade()
            && shared.holders.lock().remove(&self.uid).is_some()
        {
            shared.releases.note();
        }
    }
}

impl HostPorts {
    /// Nobody holds any. Each release is noted there.
    pub(crate) fn new(releases: Releases) -> Self {
        Self(Arc::new(Shared {
            holders: Mutex::default(),
            releases,
        }))
    }

    /// Takes all ports of a pod in place of those it has; `None` if it has none.
    ///
    /// # Errors
    /// Another pod holds one of them. Then it keeps none.
    pub(crate) fn take(
        &self,
        pod: &Pod,
        held: Option<HeldPorts>,
    ) -> Result<Option<HeldPorts>, PortHeld> {
        let wanted = ports_of(pod);
        // One lock over the check and the insertion, so that two pods never take one port.
        let holders = self.0.holders.lock();
        let mut others = holders.iter().filter(|(uid, _)| **uid != pod.uid);
        let conflict = others.find_map(|(_, (by, ports))| {
            let taken = |port: &&HostPort| ports.iter().any(|other| port.conflicts_with(other));
            let port = *wanted.iter().find(taken)?;
            Some(PortHeld {
                port,
                by: by.clone(),
            })
        });
        match conflict {
            Some(conflict) => Err(conflict),
            None => Ok(self.insert(holders, pod, &wanted, held)),
        }
    }

    /// Notes the ports of a pod that has a sandbox already; `None` if it has none.
    pub(crate) fn adopt(&self, pod: &Pod) -> Option<HeldPorts> {
        self.insert(self.0.holders.lock(), pod, &ports_of(pod), None)
    }

    fn insert(
        &self,
        mut holders: MutexGuard<'_, Holders>,
        pod: &Pod,
        ports: &[HostPort],
        held: Option<HeldPorts>,
    ) -> Option<HeldPorts> {
        if ports.is_empty() {
            // What it has is released under the same lock.
            drop(holders);
            return None;
        }
        let now = (pod.name.clone(), ports.to_vec());
        let before = holders.insert(pod.uid.clone(), now);
        drop(holders);
        if before.is_some_and(|(_, before)| before != ports) {
            self.0.releases.note();
        }
        let taken = || HeldPorts {
            shared: Arc::downgrade(&self.0),
            uid: pod.uid.clone(),
        };
        Some(held.unwrap_or_else(taken))
    }
}

/// The ports that the runtime maps for a pod. On the host's network it maps none.
fn ports_of(pod: &Pod) -> Vec<HostPort> {
    if pod.spec.host_network {
        return Vec::new();
    }
    let ports = pod.spec.all_containers().flat_map(|one| &one.ports);
    ports.filter_map(HostPort::of).collect()
}
