//! What a whole pod requests: the sum of its containers and sidecars, or one of its init containers
//! with the sidecars before it where that is more; and what the sandbox itself needs. Where the pod has
//! resources of its own (`spec.resources`), these count instead.
//!
//! Source of the rule: `PodRequests` and `PodLimits` in `k8s.io/component-helpers/resource` of
//! Kubernetes 1.36.

use std::collections::BTreeMap;

use rubelet_api::{
    aggregation::aggregate,
    container::Container,
    pod::{Pod, PodSpec},
    resources::{Bytes, MilliCpu, ResourceAmounts, Resources},
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
    let of = |take: fn(&Container) -> u64| effective(spec, take);
    let overhead = &spec.overhead;
    let own = |take: fn(&Resources) -> Option<u64>| spec.resources.as_ref().and_then(take);
    let all_limit = |take: fn(&ResourceAmounts) -> Option<u64>| {
        spec.all_containers()
            .all(|c| take(&c.resources.limits).is_some_and(|limit| limit > 0))
    };
    let requested = |sum: u64, more: Option<u64>| sum.saturating_add(more.unwrap_or(0));
    PodTotals {
        cpu_request: requested(
            own(|own| own.requests.cpu)
                .unwrap_or_else(|| of(|c| c.resources.requests.cpu.unwrap_or(0))),
            overhead.cpu,
        ),
        memory_request: requested(
            own(|own| own.requests.memory)
                .unwrap_or_else(|| of(|c| c.resources.requests.memory.unwrap_or(0))),
            overhead.memory,
        ),
        cpu_limit: limit(own(|own| own.limits.cpu), &|| {
            all_limit(|limits| limits.cpu).then(|| of(|c| c.resources.limits.cpu.unwrap_or(0)))
        })
        .map(|limit| requested(limit, overhead.cpu)),
        memory_limit: limit(own(|own| own.limits.memory), &|| {
            all_limit(|limits| limits.memory)
                .then(|| of(|c| c.resources.limits.memory.unwrap_or(0)))
        })
        .map(|limit| requested(limit, overhead.memory)),
        hugepages: hugepages(pod),
    }
}

/// The pod's own limit if it is not 0, which is none, or else that of its containers.
fn limit(own: Option<u64>, containers: &dyn Fn() -> Option<u64>) -> Option<u64> {
    match own {
        Some(limit) => Some(limit).filter(|limit| *limit > 0),
        None => containers(),
    }
}

/// The most that runs of a pod at any time: see [`aggregate`].
pub(crate) fn effective(spec: &PodSpec, take: impl Fn(&Container) -> u64) -> u64 {
    aggregate(&spec.init_containers, &spec.containers, take)
}

fn hugepages(pod: &Pod) -> BTreeMap<Bytes, Bytes> {
    let mut sums = BTreeMap::new();
    if let Some(own) = &pod.spec.resources {
        sums.extend(own.requests.hugepages.iter().copied());
    }
    for container in pod.spec.all_containers() {
        for &(size, _) in &container.resources.requests.hugepages {
            sums.entry(size)
                .or_insert_with(|| effective(&pod.spec, |one| pages(one, size)));
        }
    }
    sums
}

fn pages(container: &Container, size: Bytes) -> Bytes {
    let pools = &container.resources.requests.hugepages;
    let found = pools.iter().find(|(known, _)| *known == size);
    found.map_or(0, |(_, bytes)| *bytes)
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
