//! One task for each pod: it waits for an observation that began after its own last step, plans,
//! publishes the status, applies the steps, and waits again. Nobody else acts on the pod.

mod apply;
mod doubt;
mod draws;
mod ends;
mod ephemeral;
mod hooks;
mod post_start;
mod repeats;
mod round;
mod run;
mod start;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::PodUid;
use rubelet_cri::RuntimeService;
use rubelet_pod_plan::{History, PlanSettings, Why};
use tokio::sync::watch;

pub use run::{PodTask, TaskEnd};

use crate::{
    board::Board,
    clock::Clock,
    cluster_view::ClusterView,
    drain::Drain,
    events::Recorder,
    images::ImagePuller,
    intents::IntentBoard,
    metrics::NodeMetrics,
    node_ips::NodeIps,
    objects::ObjectSource,
    pleg::PlegHandle,
    pod_host::PodHost,
    prober::{NetProbe, ProberHandle},
    records::RecordWriter,
    runtime_state::RuntimeState,
    throttle::Throttle,
};

/// What a pod's task is told. Level-triggered: only the last value counts.
#[derive(Debug, Clone)]
pub enum Control {
    /// Keep this pod running.
    Run(Arc<Pod>),
    /// End it and remove every trace.
    Remove {
        /// Time between SIGTERM and SIGKILL.
        grace: Duration,
        /// When it was no longer wanted.
        since: Timestamp,
    },
}

/// What all pod tasks share.
pub struct PodContext {
    /// The runtime.
    pub runtime: Arc<dyn RuntimeService>,
    /// Image pulls.
    pub images: ImagePuller,
    /// Observations.
    pub pleg: PlegHandle,
    /// The host.
    pub host: Arc<dyn PodHost>,
    /// Events.
    pub recorder: Recorder,
    /// Wall time.
    pub clock: Clock,
    /// Where statuses are published.
    pub board: Arc<PodBoard>,
    /// What survives a restart of the agent.
    pub records: RecordWriter,
    /// Addresses of the node.
    pub node_ips: NodeIps,
    /// Settings of the plan.
    pub settings: PlanSettings,
    /// A bound on what the runtime starts at the same time.
    pub starts: Throttle,
    /// A bound on what it stops at the same time.
    pub stops: Throttle,
    /// A bound on what it removes at the same time, which no start and no stop uses up.
    pub removals: Throttle,
    /// Whether the runtime can be used.
    pub runtime_state: watch::Receiver<RuntimeState>,
    /// What must not be broken off.
    pub drain: Drain,
    /// Probes.
    pub prober: ProberHandle,
    /// Network probes and hooks.
    pub net: Arc<dyn NetProbe>,
    /// What operators asked for.
    pub intents: IntentBoard,
    /// The cluster, if the node is part of one.
    pub cluster: Arc<dyn ClusterView>,
    /// What pods draw from the API server.
    pub objects: Arc<dyn ObjectSource>,
    /// Where everything that happens is counted.
    pub metrics: Arc<NodeMetrics>,
}

/// Statuses by UID.
pub type PodBoard = Board<PodUid, PodEntry>;

/// What is published of a pod.
#[derive(Debug, Clone)]
pub struct PodEntry {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its status.
    pub status: PodStatus,
    /// When its removal began, and with which grace.
    pub deletion: Option<(Timestamp, Duration)>,
    /// Why the last plan was what it was.
    pub why: Vec<Why>,
    /// What was tried, and what came of it.
    pub history: Arc<History>,
    /// When the next plan is due even if nothing changes.
    pub wake_at: Option<Timestamp>,
    /// Nothing of the pod is left on this node; it stays here until its source names it no more.
    pub finished: bool,
}

impl PartialEq for PodEntry {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.pod, &other.pod) || self.pod == other.pod)
            && self.status == other.status
            && self.deletion == other.deletion
            && self.why == other.why
            && self.history == other.history
            && self.wake_at == other.wake_at
            && self.finished == other.finished
    }
}

/// Why a container could not be started: the waiting reason and the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl StartFailure {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
