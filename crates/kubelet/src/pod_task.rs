//! One task for each pod: it waits for an observation that began after its own last step, plans,
//! publishes the status, applies the steps, and waits again. Nobody else acts on the pod.

mod apply;
mod confirm_absence;
mod ephemeral;
mod hooks;
mod object_changes;
mod post_start;
mod repeat_backoff;
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
    runtime_state::RuntimeState, throttle::Throttle,
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

/// What a pod's task must do. Level-triggered: only the last value counts.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    /// Keep this pod running.
    Run(Arc<Pod>),
    /// End it and remove every trace.
    Remove {
        /// Time between SIGTERM and SIGKILL.
        grace: Duration,
        /// Since when it is no longer desired.
        since: Timestamp,
    },
}

/// What all pod tasks share.
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
    /// Where statuses are published.
    pub(crate) board: Arc<PodBoard>,
    /// What survives a restart of the agent.
    pub(crate) records: RecordWriter,
    /// Addresses of the node.
    pub(crate) node_ips: NodeIps,
    /// Settings of the plan.
    pub(crate) settings: PlanSettings,
    /// A bound on what the runtime starts at the same time.
    pub(crate) starts: Throttle,
    /// A bound on what it stops at the same time.
    pub(crate) stops: Throttle,
    /// A bound on what it removes at the same time, which no start and no stop uses up.
    pub(crate) removals: Throttle,
    /// Whether the runtime can be used.
    pub(crate) runtime_state: watch::Receiver<RuntimeState>,
    /// Ports of the host that pods hold.
    pub(crate) host_ports: HostPorts,
    /// What pods release that others may wait for.
    pub(crate) releases: Releases,
    /// Calls that must not be interrupted.
    pub(crate) drain: Drain,
    /// Probes.
    pub(crate) prober: ProberHandle,
    /// Network probes and hooks.
    pub(crate) net: Arc<dyn NetProbe>,
    /// Intents of operators.
    pub(crate) intents: IntentBoard,
    /// The cluster, if the node is part of one.
    pub(crate) cluster: Arc<dyn ClusterView>,
    /// What pods read from the API server.
    pub(crate) objects: Arc<dyn ObjectSource>,
    /// Where everything that happens is counted.
    pub(crate) metrics: Arc<NodeMetrics>,
}
