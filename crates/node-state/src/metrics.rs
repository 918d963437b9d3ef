//! Prometheus metrics of the node, with the kubelet's names where the kubelet has them.
//!
//! The parts of the agent count their own operations here; a scrape changes nothing. Durations are
//! in seconds. Source of names, help texts, types and buckets: Kubernetes, `pkg/kubelet/metrics`.
//! Rubelet's own metrics begin with `rubelet_`.

mod api;
mod factory;
mod facts;
mod http;
mod images;
mod peers;
mod pleg;
mod pods;
mod process;
mod runtime;
mod shutdowns;
mod tasks;

use std::sync::Arc;

use prometheus::{Registry, TextEncoder};

pub use self::{
    api::ApiMetrics,
    facts::{BuildLabels, FactMetrics},
    http::{HttpLabels, HttpMetrics},
    images::ImageMetrics,
    peers::{PeerMetrics, PeerPing},
    pleg::{PlegMetrics, PlegSnapshot},
    pods::{CgroupChange, PodMetrics, SyncKind},
    runtime::{RuntimeMetrics, operation_type},
    shutdowns::ShutdownMetrics,
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
            images: ImageMetrics::new(&factory),
            http: HttpMetrics::new(&factory),
            api: ApiMetrics::new(&factory),
            peers: PeerMetrics::new(&factory),
            shutdowns: ShutdownMetrics::new(&factory),
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
