//! Numbers of the node for Prometheus, under the kubelet's names where the kubelet has them.
//!
//! Whoever does something counts it here; reading changes nothing. Durations are in seconds.
//! Source of names, help texts, types and buckets: Kubernetes, `pkg/kubelet/metrics`. What is
//! Rubelet's own begins with `rubelet_`.

mod api;
mod http;
mod images;
mod make;
mod peers;
mod pleg;
mod pods;
mod runtime;

use std::sync::Arc;

use prometheus::{Registry, TextEncoder};

use self::make::Maker;
pub use self::{
    api::ApiMetrics,
    http::{HttpLabels, HttpMetrics},
    images::ImageMetrics,
    peers::{PeerMetrics, PeerPing},
    pleg::{PlegMetrics, PlegNow},
    pods::{PodMetrics, SyncKind},
    runtime::{RuntimeMetrics, operation_type},
};

/// All numbers of a node. Shared by `Arc`; counting takes no lock that a reader holds for long.
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
    /// Of requests to the API server; without samples on a node that has none.
    pub api: ApiMetrics,
    /// Of pings to other nodes.
    pub peers: PeerMetrics,
}

impl NodeMetrics {
    /// Numbers that nothing was counted in yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let registry = Registry::new();
        let maker = Maker::new(&registry);
        Arc::new(Self {
            pleg: PlegMetrics::new(&maker),
            runtime: RuntimeMetrics::new(&maker),
            pods: PodMetrics::new(&maker),
            images: ImageMetrics::new(&maker),
            http: HttpMetrics::new(&maker),
            api: ApiMetrics::new(&maker),
            peers: PeerMetrics::new(&maker),
            registry,
        })
    }

    /// All numbers in Prometheus' text format 0.0.4.
    #[must_use]
    pub fn render(&self) -> String {
        self.pleg.look();
        self.api.look();
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
