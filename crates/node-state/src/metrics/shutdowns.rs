//! Metrics of graceful shutdowns of the node.

use prometheus::IntGauge;

use super::factory::MetricFactory;

/// Metrics of graceful shutdowns of the node.
#[derive(Debug)]
pub struct ShutdownMetrics {
    start: IntGauge,
    end: IntGauge,
}

impl ShutdownMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            start: factory.gauge(
                "kubelet_graceful_shutdown_start_time_seconds",
                "Last graceful shutdown start time since unix epoch in seconds",
            ),
            end: factory.gauge(
                "kubelet_graceful_shutdown_end_time_seconds",
                "Last graceful shutdown end time since unix epoch in seconds",
            ),
        }
    }

    /// The last shutdown began and ended at these seconds of the epoch; 0 is shown for `None`.
    pub fn set(&self, start: Option<i64>, end: Option<i64>) {
        self.start.set(start.unwrap_or_default());
        self.end.set(end.unwrap_or_default());
    }
}
