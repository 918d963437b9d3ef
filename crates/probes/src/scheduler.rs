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
use rubelet_pod_plan::{ProbeKind, ProbeResult, ProbeResults, ProbeTarget, probe::AttemptOutcome};
use tokio::sync::watch;

pub use net::NetProbe;
pub use task::ProberTask;

use probe_state::{ProbeState, WantedProbes};

/// The handle of the prober: sets probes and reads their results. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ProberHandle {
    state: Arc<ProbeState>,
}

/// The last attempt of one probe, for `rubelet why`.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeStatus {
    /// Name of the container.
    pub container: Box<str>,
    /// The instance of the container.
    pub id: ContainerId,
    /// The kind of the probe.
    pub kind: ProbeKind,
    /// The result.
    pub outcome: ProbeResult,
    /// Number of consecutive counted attempts with the last outcome.
    pub length: u32,
    /// Outcome of the last attempt; `None` if there was none yet.
    pub last: Option<AttemptOutcome>,
    /// When the last attempt ended; `None` if there was none yet.
    pub at: Option<Timestamp>,
    /// Its duration.
    pub latency: Duration,
    /// The beginning of its output.
    pub output: Box<str>,
    /// Number of failures that were not counted because the agent was late.
    pub late: u64,
    /// When the next attempt is due; `None` if there is none until the container is replaced, or
    /// until the pod has an address.
    pub next: Option<Timestamp>,
}

impl ProberHandle {
    /// Sets the probes of a pod and its address. Without an address, probes that need one wait.
    pub fn set(&self, pod: &Arc<Pod>, ip: &str, targets: Vec<ProbeTarget>) {
        self.state.want(
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
        self.state.forget(uid);
    }

    /// Follows the results of a pod's probes; level-triggered.
    #[must_use]
    pub fn outcomes(&self, uid: &PodUid) -> watch::Receiver<Arc<ProbeResults>> {
        self.state.outcomes(uid)
    }

    /// The last attempts of a pod's probes: of active probes, and of finished ones of the same
    /// instances, such as a startup probe that has succeeded.
    #[must_use]
    pub fn reports(&self, uid: &PodUid) -> Vec<ProbeStatus> {
        self.state.reports(uid)
    }

    /// Metrics of all probes in Prometheus' text format 0.0.4. Those of a pod start at zero with
    /// the agent, and are removed with the pod.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.state.metrics()
    }
}
