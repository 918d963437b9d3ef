//! One task for each pod: it waits for an observation that began after its own last step, plans,
//! publishes the status, applies the steps, and waits again. No other task acts on the pod.

mod apply;
mod confirm_absence;
mod ephemeral;
mod hooks;
mod object_changes;
mod post_start;
mod repeat_backoff;
mod resume;
mod run;
mod start;
mod sync_round;
mod terminations;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::{ContainerId, PodUid, Seq};
use rubelet_cri::RuntimeService;
use rubelet_image_pull::images::ImagePuller;
use rubelet_node_state::{
    clock::Clock, cluster_view::ClusterView, events::Recorder, intents::IntentBoard,
    metrics::NodeMetrics, node_ips::NodeIps, objects::ObjectSource, pod_board::PodBoard,
    runtime_state::RuntimeState, shutdown_state::ShutdownState, throttle::Throttle,
};
use rubelet_pleg::{Observation, PlegHandle};
use rubelet_pod_plan::{History, ObservedPod, OperatorIntents, PlanSettings, ProbeResults};
use rubelet_probes::{NetProbe, ProberHandle};
use tokio::{sync::watch, time::Instant};

use self::{
    apply::UnfinishedStop, confirm_absence::AbsenceCheck, object_changes::ObjectChanges,
    repeat_backoff::RepeatBackoff, sync_round::SyncRound,
};
use crate::{
    drain::Drain,
    host_ports::{HeldPorts, HostPorts},
    pod_host::PodHost,
    records::RecordWriter,
    releases::Releases,
};

/// The address of a pod in the host's network namespace while the node has no address.
const LOCAL: &str = "127.0.0.1";

/// The order to a pod's task. Level-triggered: only the last value counts.
#[derive(Debug, Clone)]
pub(crate) enum PodControl {
    /// Keep this pod running.
    Run(Arc<Pod>),
    /// Terminate the pod and clean up everything.
    Remove {
        /// Time between SIGTERM and SIGKILL.
        grace: Duration,
        /// Time since which it is no longer desired.
        since: Timestamp,
        /// The generation of the pod as its source deletes it; 0 if no source names it any more.
        generation: i64,
    },
}

/// The dependencies of all pod tasks.
pub(crate) struct PodContext {
    /// The runtime.
    pub(crate) runtime: Arc<dyn RuntimeService>,
    /// Image pulls.
    pub(crate) images: ImagePuller,
    /// Observations.
    pub(crate) pleg: PlegHandle,
    /// The host.
    pub(crate) host: Arc<dyn PodHost>,
    /// Events.
    pub(crate) recorder: Recorder,
    /// Wall time.
    pub(crate) clock: Clock,
    /// The board with the published statuses.
    pub(crate) board: Arc<PodBoard>,
    /// Records that survive a restart of the agent.
    pub(crate) records: RecordWriter,
    /// Addresses of the node.
    pub(crate) node_ips: NodeIps,
    /// Settings of the plan.
    pub(crate) settings: PlanSettings,
    /// Bound on concurrent creations and starts in the runtime.
    pub(crate) starts: Throttle,
    /// Bound on concurrent stops.
    pub(crate) stops: Throttle,
    /// Bound on concurrent removals, independent of starts and stops.
    pub(crate) removals: Throttle,
    /// The state of the runtime.
    pub(crate) runtime_state: watch::Receiver<RuntimeState>,
    /// Whether the node shuts down.
    pub(crate) shutdown: watch::Receiver<ShutdownState>,
    /// Host ports that pods hold.
    pub(crate) host_ports: HostPorts,
    /// Releases of resources that other pods may wait for.
    pub(crate) releases: Releases,
    /// Runs calls that must not be interrupted.
    pub(crate) drain: Drain,
    /// Probes.
    pub(crate) prober: ProberHandle,
    /// Network probes and hooks.
    pub(crate) net: Arc<dyn NetProbe>,
    /// Intents of operators.
    pub(crate) intents: IntentBoard,
    /// The cluster, if the node is part of one.
    pub(crate) cluster: Arc<dyn ClusterView>,
    /// Objects of pods in the API server.
    pub(crate) objects: Arc<dyn ObjectSource>,
    /// Metrics of the node.
    pub(crate) metrics: Arc<NodeMetrics>,
}

/// The task of one pod.
pub(crate) struct PodTask {
    context: Arc<PodContext>,
    pod: Arc<Pod>,
    control: watch::Receiver<PodControl>,
    history: History,
    observed: Arc<ObservedPod>,
    observations: watch::Receiver<Observation>,
    /// Number of the last step; only an observation with a larger number is acted on.
    last_step: Seq,
    /// Set while a list may omit containers of an earlier process.
    absence_check: Option<AbsenceCheck>,
    /// True if the pod ran here and its record is lost: its times are determined again.
    lost_record: bool,
    status: Option<PodStatus>,
    /// True if a finished pod was edited, or one that is being removed is desired again: it is
    /// removed and starts again.
    recreate: bool,
    /// The definition that the status and the history belong to.
    definition: Box<str>,
    /// The `kubernetes.io/config.hash` of the pod that ran last; empty if it is unknown.
    content: Box<str>,
    removing: bool,
    repeat_backoff: RepeatBackoff,
    /// The attempt of a sandbox whose creation was abandoned: the runtime may still create it.
    abandoned_sandbox: Option<u32>,
    round: SyncRound,
    intents: watch::Receiver<Arc<OperatorIntents>>,
    /// Whether the node shuts down.
    shutdown: watch::Receiver<ShutdownState>,
    outcomes: watch::Receiver<Arc<ProbeResults>>,
    /// The pod as its source defines it, without ephemeral containers.
    from_source: Arc<Pod>,
    /// The ephemeral containers that were added to it, as JSON.
    ephemeral: Vec<Box<str>>,
    generation: i64,
    /// Stops of containers that failed.
    unfinished: BTreeMap<ContainerId, UnfinishedStop>,
    /// The pod that the host was last prepared for; an edit may require another cgroup.
    prepared: Option<Arc<Pod>>,
    /// Since when the volumes for a sandbox are being made.
    volumes_wanted: Option<Instant>,
    object_changes: ObjectChanges,
    node_ips: NodeIps,
    /// The host ports that the pod holds.
    held_ports: Option<HeldPorts>,
    /// Releases of resources by other pods.
    releases: watch::Receiver<u64>,
    /// Message of the last event about a host port in use; empty if the pod waits for none.
    awaited_port: Box<str>,
}

/// The result of a pod's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskEnd {
    /// The pod.
    pub(crate) uid: PodUid,
    /// The attempt of a sandbox that the runtime may still create.
    pub(crate) abandoned_sandbox: Option<u32>,
}
