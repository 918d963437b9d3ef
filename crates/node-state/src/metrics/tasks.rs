//! Metrics of the agent's own tasks.

use prometheus::IntGauge;
use tokio::runtime::Handle;

use super::factory::MetricFactory;

/// Metrics of the async runtime.
#[derive(Debug)]
pub(super) struct TaskMetrics {
    alive: IntGauge,
}

impl TaskMetrics {
    pub(super) fn new(factory: &MetricFactory<'_>) -> Self {
        Self {
            alive: factory.gauge(
                "rubelet_async_tasks",
                "Tasks of the agent that have not ended: those of pods, connections, sessions and loops.",
            ),
        }
    }

    /// Reads the number; without a runtime there are no tasks.
    pub(super) fn look(&self) {
        let alive = Handle::try_current().map_or(0, |handle| handle.metrics().num_alive_tasks());
        self.alive.set(i64::try_from(alive).unwrap_or(i64::MAX));
    }
}
