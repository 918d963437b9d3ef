//! Prometheus metrics of the node, with the kubelet's names where the kubelet has them.
//!
//! The parts of the agent count their own operations here; a scrape changes nothing. Durations are
//! in seconds. Source of names, help texts, types and buckets: Kubernetes, `pkg/kubelet/metrics`,
//! `images`, `images/pullmanager` and `volumemanager/metrics` beside it, `pkg/volume/util` and
//! `pkg/credentialprovider/plugin`.
//! Rubelet's own metrics begin with `rubelet_`.

mod api;
mod factory;
mod facts;
mod hooks;
mod http;
mod images;
mod node_startup;
mod peers;
mod pleg;
mod pod_counts;
mod pods;
mod probe;
mod process;
mod runtime;
mod shutdowns;
mod start_latency;
mod starts;
mod storage;
mod tasks;

use std::sync::Arc;

use prometheus::{Registry, TextEncoder};

pub use self::{
    api::ApiMetrics,
    facts::{BuildLabels, FactMetrics},
    hooks::{HookMetrics, HookSleep},
    http::{HttpLabels, HttpMetrics},
    images::{AccessVerdict, ImageMetrics},
    node_startup::NodeStartupMetrics,
    peers::{PeerMetrics, PeerPing},
    pleg::{PlegMetrics, PlegSnapshot},
    pod_counts::{PodCountMetrics, PodCounts, WorkOrigin, WorkStage},
    pods::{CgroupChange, PodMetrics, SyncKind},
    runtime::{RuntimeMetrics, operation_type},
    shutdowns::ShutdownMetrics,
    start_latency::{ObservedStart, PodPull, StartLatencyMetrics, StartProgress},
    starts::StartMetrics,
    storage::{StorageMetrics, VolumeOperation},
};
use self::{factory::MetricFactory, process::ProcessMetrics, tasks::TaskMetrics};

/// All metrics of a node. Shared by `Arc`; counting takes no lock that a scrape holds for long.
pub struct NodeMetrics {
    registry: Registry,
    /// Of PLEG.
    pub pleg: PlegMetrics,
    /// Of calls to the runtime.
    pub runtime: RuntimeMetrics,
    /// Of pod tasks.
    pub pods: PodMetrics,
    /// Of how many pods there are.
    pub pod_counts: PodCountMetrics,
    /// Of starts of pods and containers.
    pub starts: StartMetrics,
    /// Of how long pods of the API server take to start.
    pub start_latency: StartLatencyMetrics,
    /// Of lifecycle hooks.
    pub hooks: HookMetrics,
    /// Of volumes.
    pub storage: StorageMetrics,
    /// Of images.
    pub images: ImageMetrics,
    /// Of requests to the agent.
    pub http: HttpMetrics,
    /// Of requests to the API server; without samples on a standalone node.
    pub api: ApiMetrics,
    /// Of pings to other nodes.
    pub peers: PeerMetrics,
    /// Of graceful shutdowns of the node.
    pub shutdowns: ShutdownMetrics,
    /// Of the start of the node.
    pub node_startup: NodeStartupMetrics,
    /// Which node and which program this is.
    pub facts: FactMetrics,
    process: ProcessMetrics,
    tasks: TaskMetrics,
}

impl NodeMetrics {
    /// Creates metrics with initial values.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let registry = Registry::new();
        let factory = MetricFactory::new(&registry);
        Arc::new(Self {
            pleg: PlegMetrics::new(&factory),
            runtime: RuntimeMetrics::new(&factory),
            pods: PodMetrics::new(&factory),
            pod_counts: PodCountMetrics::new(&factory),
            starts: StartMetrics::new(&factory),
            start_latency: StartLatencyMetrics::new(&factory),
            hooks: HookMetrics::new(&factory),
            storage: StorageMetrics::new(&factory),
            images: ImageMetrics::new(&factory),
            http: HttpMetrics::new(&factory),
            api: ApiMetrics::new(&factory),
            peers: PeerMetrics::new(&factory),
            shutdowns: ShutdownMetrics::new(&factory),
            node_startup: NodeStartupMetrics::new(&factory),
            facts: FactMetrics::new(&factory),
            process: ProcessMetrics::new(&factory),
            tasks: TaskMetrics::new(&factory),
            registry,
        })
    }

    /// All metrics in Prometheus' text format 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        self.pleg.look();
        self.pod_counts.look();
        self.api.look();
        self.process.look();
        self.tasks.look();
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .expect("every family has a name and numbers of its own type")
    }
}

impl std::fmt::Debug for NodeMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NodeMetrics")
    }
}

#[cfg(test)]
mod tests;
