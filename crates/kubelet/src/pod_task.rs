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

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::pod::Pod;
use rubelet_cri::RuntimeService;
use rubelet_image_pull::images::ImagePuller;
use rubelet_node_state::{
    clock::Clock, cluster_view::ClusterView, events::Recorder, intents::IntentBoard,
    metrics::NodeMetrics, node_ips::NodeIps, objects::ObjectSource, pod_board::PodBoard,
    runtime_state::RuntimeState, shutdown_state::ShutdownState, throttle::Throttle,
};
use rubelet_pleg::PlegHandle;
use rubelet_pod_plan::PlanSettings;
use rubelet_probes::{NetProbe, ProberHandle};
use tokio::sync::watch;

pub(crate) use run::{PodTask, TaskEnd};

use crate::{
    drain::Drain, host_ports::HostPorts, pod_host::PodHost, records::RecordWriter,
    releases::Releases,
};

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
