//! What the node accounts of a whole pod: see [`pod_amounts`].

use std::collections::BTreeMap;

use rubelet_api::{
    aggregation::aggregate,
    container::Container,
    pod::{Pod, PodSpec},
    pod_amounts,
    resource_name::{CPU, MEMORY, hugepages_size},
    resources::{Bytes, MilliCpu},
};

/// Totals of one pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodTotals {
    /// Thousandths of a core requested.
    pub cpu_request: MilliCpu,
    /// Bytes requested.
    pub memory_request: Bytes,
    /// Thousandths of a core, if every container has a limit.
    pub cpu_limit: Option<MilliCpu>,
    /// Bytes, if every container has a limit.
    pub memory_limit: Option<Bytes>,
    /// Huge pages: page size and bytes.
    pub hugepages: BTreeMap<Bytes, Bytes>,
}

/// Adds up a pod.
#[must_use]
pub fn totals(pod: &Pod) -> PodTotals {
    let spec = &pod.spec;
    let request = |name: &str| pod_amounts::request(spec, name).unwrap_or(0);
    let limit = |name: &str| pod_amounts::limit(spec, name);
    // Huge pages are those of the containers, without the overhead.
    let scalars = pod_amounts::scalar_requests_without_overhead(spec).into_iter();
    let hugepages = scalars.filter_map(|(name, amount)| Some((hugepages_size(&name)?, amount)));
    PodTotals {
        cpu_request: request(CPU),
        memory_request: request(MEMORY),
        cpu_limit: limit(CPU),
        memory_limit: limit(MEMORY),
        hugepages: hugepages.collect(),
    }
}

/// The most that runs of a pod at any time: see [`aggregate`].
pub(crate) fn effective(spec: &PodSpec, take: impl Fn(&Container) -> u64) -> u64 {
    aggregate(&spec.init_containers, &spec.containers, take)
}

/// The limit of the pod's memory in bytes, if each of its containers has one.
#[must_use]
pub(crate) fn pod_memory_limit(pod: &Pod) -> Option<Bytes> {
    totals(pod).memory_limit
}

/// The most that one `emptyDir` in memory may hold before its own `sizeLimit`: what the pod may
/// use, but no more than all pods of the node.
#[must_use]
pub fn memory_volume_bound(pod: &Pod, allocatable_memory: Bytes) -> Bytes {
    pod_memory_limit(pod).map_or(allocatable_memory, |limit| limit.min(allocatable_memory))
}

#[cfg(test)]
mod tests;
