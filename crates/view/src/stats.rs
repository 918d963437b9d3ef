//! Documents of statistics, from what the collector measures.

use std::{sync::Arc, time::Duration};

use rubelet_server::{StatsDocument, StatsRequest};
use rubelet_stats::{
    StatsCollector, StatsDetail, cadvisor_metrics, log_metrics, resource_metrics, summary,
};

/// The age of the numbers for somebody who looks at them as they change.
const LIVE: Duration = Duration::from_secs(1);

/// Measures the node and its pods.
pub struct StatsParts {
    /// Reads the numbers.
    pub collector: Arc<StatsCollector>,
    /// How old numbers may be: they are read at most this often, however many clients ask.
    pub max_age: Duration,
}

impl StatsParts {
    /// The document that is requested.
    pub(super) async fn document(&self, request: StatsRequest, node_name: &str) -> String {
        let max_age = match request.live {
            true => LIVE.min(self.max_age),
            false => self.max_age,
        };
        let detail = match request.document {
            StatsDocument::ResourceMetrics
            | StatsDocument::Summary {
                only_cpu_and_memory: true,
            } => StatsDetail::Usage,
            StatsDocument::CadvisorMetrics => StatsDetail::Cadvisor,
            StatsDocument::LogMetrics | StatsDocument::Summary { .. } => StatsDetail::Summary,
        };
        let sample = self.collector.sample(detail, max_age).await;
        match request.document {
            StatsDocument::ResourceMetrics => resource_metrics(&sample),
            StatsDocument::CadvisorMetrics => cadvisor_metrics(&sample),
            StatsDocument::LogMetrics => log_metrics(&sample),
            StatsDocument::Summary { .. } => summary(&sample, node_name),
        }
    }
}
