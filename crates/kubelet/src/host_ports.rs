//! Host ports that pods hold. A pod waits for a port that another pod holds instead of failing: it
//! starts within milliseconds of the release, and its back-off does not grow.
//!
//! Only ports of this agent's pods are known here, whatever the runtime. The runtime detects all
//! other conflicts.

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

/// A host port that another pod holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortConflict {
    port: HostPort,
    by: PodName,
}

impl fmt::Display for PortConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { port, by } = self;
        write!(f, "host port {port} is in use by pod {by}")?;
        write!(f, "; this pod starts when the port is released")
    }
}

type Holders = BTreeMap<PodUid, (PodName, Vec<HostPort>)>;

/// The ports that pods hold. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct HostPorts(Arc<SharedPorts>);

#[derive(Debug)]
struct SharedPorts {
    holders: Mutex<Holders>,
    releases: Releases,
}

/// The ports of one pod, released when this is dropped.
#[derive(Debug)]
pub(crate) struct HeldPorts {
    shared: Weak<SharedPorts>,
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
    /// No port is held. Each release is noted in `releases`.
    pub(crate) fn new(releases: Releases) -> Self {
        Self(Arc::new(SharedPorts {
            holders: Mutex::default(),
            releases,
        }))
    }

    /// Takes all ports of a pod in place of those it holds; `None` if the pod has no host
    /// port.
    ///
    /// # Errors
    /// Another pod holds one of them. The pod then holds none.
    pub(crate) fn take(
        &self,
        pod: &Pod,
        held: Option<HeldPorts>,
    ) -> Result<Option<HeldPorts>, PortConflict> {
        let wanted = ports_of(pod);
        // One lock over the check and the insertion, so that two pods never take one port.
        let holders = self.0.holders.lock();
        let mut others = holders.iter().filter(|(uid, _)| **uid != pod.uid);
        let conflict = others.find_map(|(_, (by, ports))| {
            let taken = |port: &&HostPort| ports.iter().any(|other| port.conflicts_with(other));
            let port = *wanted.iter().find(taken)?;
            Some(PortConflict {
                port,
                by: by.clone(),
            })
        });
        match conflict {
            Some(conflict) => Err(conflict),
            None => Ok(self.insert(holders, pod, &wanted, held)),
        }
    }

    /// Takes the ports of a pod that already has a sandbox; `None` if the pod has no host port.
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
            // Dropping `held` locks the holders again.
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

/// The ports that the runtime maps for a pod; none in the host's network namespace.
fn ports_of(pod: &Pod) -> Vec<HostPort> {
    if pod.spec.host_network {
        return Vec::new();
    }
    let ports = pod.spec.all_containers().flat_map(|one| &one.ports);
    ports.filter_map(HostPort::of).collect()
}
