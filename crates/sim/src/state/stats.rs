//! Resource usage of containers. A model's containers use the memory that the test sets, and no CPU
//! time.

use rubelet_cri::v1;

use super::{
    Container, RuntimeError, SimState,
    filter::{is_or_empty, selects},
};
use crate::clock::wall;

impl Container {
    fn has_stats_for(&self, filter: Option<&v1::ContainerStatsFilter>) -> bool {
        filter.is_none_or(|filter| {
            is_or_empty(&filter.id, &self.instance.id)
                && is_or_empty(&filter.pod_sandbox_id, &self.instance.sandbox_id)
                && selects(&filter.label_selector, &self.config.labels)
        })
    }

    fn stats(&self, timestamp: i64) -> v1::ContainerStats {
        let value = |value| Some(v1::UInt64Value { value });
        let running = self.is_running();
        v1::ContainerStats {
            attributes: Some(v1::ContainerAttributes {
                id: self.instance.id.clone(),
                metadata: self.metadata(),
                labels: self.config.labels.clone(),
                annotations: self.config.annotations.clone(),
            }),
            cpu: running.then(|| v1::CpuUsage {
                timestamp,
                usage_core_nano_seconds: value(0),
                usage_nano_cores: value(0),
                ..Default::default()
            }),
            memory: running.then(|| v1::MemoryUsage {
                timestamp,
                working_set_bytes: value(self.memory),
                usage_bytes: value(self.memory),
                rss_bytes: value(self.memory),
                ..Default::default()
            }),
            ..Default::default()
        }
    }
}

impl SimState {
    pub(crate) fn container_stats(
        &mut self,
        request: &v1::ContainerStatsRequest,
    ) -> Result<v1::ContainerStatsResponse, RuntimeError> {
        let now = wall(self.clock.now());
        let stats = self.container(&request.container_id)?.stats(now);
        Ok(v1::ContainerStatsResponse { stats: Some(stats) })
    }

    pub(crate) fn list_container_stats(
        &mut self,
        request: &v1::ListContainerStatsRequest,
    ) -> Result<v1::ListContainerStatsResponse, RuntimeError> {
        let now = wall(self.clock.now());
        let all = self.containers.values();
        let some = all.filter(|container| container.has_stats_for(request.filter.as_ref()));
        // As in containerd, a list has no stats of containers that don't run.
        let running = some.filter(|container| container.is_running());
        Ok(v1::ListContainerStatsResponse {
            stats: running.map(|container| container.stats(now)).collect(),
        })
    }
}
