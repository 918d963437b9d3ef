//! Requests for statistics.

use rubelet_http_core::query::Query;

/// A request for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsRequest {
    /// What is requested.
    pub document: StatsDocument,
    /// True for somebody who looks at the numbers as they change: they are at most a second old. Else
    /// they may be as old as the node allows.
    pub live: bool,
}

/// A document of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatsDocument {
    /// `/metrics/resource`: CPU and memory, in Prometheus' text format 0.0.4.
    ResourceMetrics,
    /// `/metrics/cadvisor`: numbers that dashboards read, in Prometheus' text format 0.0.4.
    CadvisorMetrics,
    /// The end of `/metrics` of the kubelet's port: numbers that name containers.
    LogMetrics,
    /// `/stats/summary`, as JSON.
    Summary {
        /// `only_cpu_and_memory=true`: without disks and networks.
        only_cpu_and_memory: bool,
    },
}

impl StatsDocument {
    /// The summary that a query of `/stats/summary` requests.
    #[must_use]
    pub fn summary(query: &Query) -> Self {
        // Any other value means the whole summary, as in the kubelet.
        Self::Summary {
            only_cpu_and_memory: query.get("only_cpu_and_memory") == Some("true"),
        }
    }
}
