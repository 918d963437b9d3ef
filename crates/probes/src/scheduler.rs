//! Probes of all pods: one task, one timer for all of them.
//!
//! A pod's task sets the probes to run ([`ProberHandle::set`]); the prober runs them in time and
//! publishes their results ([`ProberHandle::outcomes`]). Both are level-triggered.

mod attempt;
mod exec;
mod net;
mod pod_probes;
mod pods;
mod probe;
mod probe_context;
mod probe_metrics;
mod probe_state;
mod probe_try;
mod sockets;
mod task;
#[cfg(test)]
mod tests;
mod timing;
mod wheel;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::pod::Pod;
use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ProbeKind, ProbeResult, ProbeResults, ProbeTarget, probe::Attempt};
use tokio::sync::watch;

pub use net::NetProbe;
pub use task::ProberTask;

use probe_state::{ProbeState, WantedProbes};

/// Passes probes to the prober, and results to others. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProberHandle {
    rows: Arc<ProbeState>,
}

/// The last attempt of one probe, for `rubelet why`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeStatus {
    /// Name of the container.
    pub container: Box<str>,
    /// The instance that was tried.
    pub id: ContainerId,
    /// Which probe.
    pub kind: ProbeKind,
    /// What the attempts amount to.
    pub outcome: ProbeResult,
    /// How many attempts in a row ended as the last one that counted did.
    pub length: u32,
    /// How the last attempt ended; `None` if there was none yet.
    pub last: Option<Attempt>,
    /// When the last attempt ended; `None` if there was none yet.
    pub at: Option<Timestamp>,
    /// How long it took.
    pub latency: Duration,
    /// The beginning of its output.
    pub output: Box<str>,
    /// How often the agent ran it so late that its failure was not counted.
    pub late: u64,
    /// When the next attempt is due; `None` if none is until the container is replaced, or until
    /// the pod has an address.
    pub next: Option<Timestamp>,
}

impl ProberHandle {
    /// Sets which probes of a pod must be tried from now on, at this address. Without an address,
    /// probes that need it wait.
    pub fn set(&self, pod: &Arc<Pod>, ip: &str, targets: Vec<ProbeTarget>) {
        self.rows.want(
            &pod.uid,
            WantedProbes {
                pod: Arc::clone(pod),
                ip: ip.into(),
                targets,
            },
        );
    }

    /// Forgets a pod.
    pub fn forget(&self, uid: &PodUid) {
        self.rows.forget(uid);
    }

    /// Follows what the probes of a pod amount to; level-triggered.
    #[must_use]
    pub fn outcomes(&self, uid: &PodUid) -> watch::Receiver<Arc<ProbeResults>> {
        self.rows.outcomes(uid)
    }

    /// The last attempts of a pod's probes: of all that are tried, and of those of the same
    /// instances that are no longer tried, such as a startup probe that has succeeded.
    #[must_use]
    pub fn reports(&self, uid: &PodUid) -> Vec<ProbeStatus> {
        self.rows.reports(uid)
    }

    /// Numbers of all probes in Prometheus' text format 0.0.4. Those of a pod start at zero with
    /// the agent, and go with the pod.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.rows.metrics()
    }
}
