//! What a whole pod asks for: the sum of its containers and sidecars, or one of its init containers
//! with the sidecars before it where that is more; and what the sandbox itself needs.
//!
//! Source of the rule: `PodRequests` and `PodLimits` in `k8s.io/component-helpers/resource` of
//! Kubernetes 1.36.

use std::collections::BTreeMap;

use rubelet_api::{
    container::Container,
    pod::{Pod, PodSpec, RestartPolicy},
    resources::{Bytes, MilliCpu, ResourceAmounts},
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
    let all_limit = |take: fn(&ResourceAmounts) -> Option<u64>| {
        spec.all_containers()
            .all(|c| take(&c.resources.limits).is_some_and(|limit| limit > 0))
    };
    let requested = |sum: u64, more: Option<u64>| sum.saturating_add(more.unwrap_or(0));
    PodTotals {
        cpu_request: requested(of(|c| c.resources.requests.cpu.unwrap_or(0)), overhead.cpu),
        memory_request: requested(
            of(|c| c.resources.requests.memory.unwrap_or(0)),
            overhead.memory,
        ),
        cpu_limit: all_limit(|limits| limits.cpu).then(|| {
            let sum = of(|c| c.resources.limits.cpu.unwrap_or(0));
            requested(sum, overhead.cpu)
        }),
        memory_limit: all_limit(|limits| limits.memory).then(|| {
            let sum = of(|c| c.resources.limits.memory.unwrap_or(0));
            requested(sum, overhead.memory)
        }),
        hugepages: hugepages(pod),
    }
}

/// The most that runs of a pod at any time, of what `take` takes of each container: all containers
/// and sidecars, or an init container beside the sidecars before it.
pub(crate) fn effective(spec: &PodSpec, take: impl Fn(&Container) -> u64) -> u64 {
    let mut sidecars = 0u64;
    let mut starting = 0u64;
    for container in &spec.init_containers {
        let amount = take(container);
        if container.restart_policy == Some(RestartPolicy::Always) {
            sidecars = sidecars.saturating_add(amount);
            starting = starting.max(sidecars);
        } else {
            starting = starting.max(sidecars.saturating_add(amount));
        }
    }
    let running = spec.containers.iter().fold(sidecars, |sum, container| {
        sum.saturating_add(take(container))
    });
    running.max(starting)
}

fn hugepages(pod: &Pod) -> BTreeMap<Bytes, Bytes> {
    let mut sums = BTreeMap::new();
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
pub fn pod_memory_limit(pod: &Pod) -> Option<Bytes> {
    totals(pod).memory_limit
}

/// The most that one `emptyDir` in memory may hold before its own `sizeLimit`: what the pod may
/// use, but no more than all pods of the node.
#[must_use]
pub fn memory_volume_bound(pod: &Pod, allocatable_memory: Bytes) -> Bytes {
    pod_memory_limit(pod).map_or(allocatable_memory, |limit| limit.min(allocatable_memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::{amounts, container, pod};

    const GIB: u64 = 1 << 30;

    #[test]
    fn init_containers_count_by_the_largest_and_others_by_the_sum() {
        let mut pod = pod();
        pod.spec.containers = vec![
            container("a", amounts(100, 10), amounts(200, 20)),
            container("b", amounts(50, 5), amounts(50, 5)),
        ];
        pod.spec.init_containers = vec![
            container("i", amounts(120, 90), amounts(400, 90)),
            container("j", amounts(10, 1), amounts(10, 1)),
        ];
        let totals = totals(&pod);
        assert_eq!(totals.cpu_request, 150);
        assert_eq!(totals.memory_request, 90);
        assert_eq!(totals.cpu_limit, Some(400));
        assert_eq!(totals.memory_limit, Some(90));
    }

    #[test]
    fn sidecars_run_beside_containers_and_beside_the_init_containers_after_them() {
        let mut pod = pod();
        let of = |cpu| container("x", amounts(cpu, 1), amounts(cpu, 1));
        let sidecar = |cpu| Container {
            restart_policy: Some(RestartPolicy::Always),
            ..of(cpu)
        };
        pod.spec.containers = vec![of(100), of(50)];
        for (init, expected) in [
            (vec![sidecar(10), sidecar(20)], 180),
            (vec![of(300), sidecar(10)], 300),
            (vec![sidecar(10), of(300), sidecar(20)], 310),
        ] {
            pod.spec.init_containers = init;
            let totals = totals(&pod);
            assert_eq!(totals.cpu_request, expected);
            assert_eq!(totals.cpu_limit, Some(expected));
        }
        pod.spec.overhead = amounts(5, 7);
        let totals = totals(&pod);
        assert_eq!((totals.cpu_request, totals.cpu_limit), (315, Some(315)));
        assert_eq!(totals.memory_request, 4 + 7);
    }

    #[test]
    fn one_container_without_a_limit_leaves_the_pod_without_one() {
        let mut pod = pod();
        pod.spec.containers = vec![
            container("a", amounts(100, 10), amounts(200, 20)),
            container(
                "b",
                amounts(50, 5),
                ResourceAmounts {
                    cpu: Some(50),
                    ..Default::default()
                },
            ),
        ];
        let totals = totals(&pod);
        assert_eq!(totals.cpu_limit, Some(250));
        assert_eq!(totals.memory_limit, None);
    }

    #[test]
    fn huge_pages_of_one_size_add_up() {
        let mut pod = pod();
        let with = |pages: &[(u64, u64)]| ResourceAmounts {
            hugepages: pages.to_vec(),
            ..Default::default()
        };
        pod.spec.containers = vec![
            container(
                "a",
                with(&[(2 << 20, 4 << 20)]),
                with(&[(2 << 20, 4 << 20)]),
            ),
            container(
                "b",
                with(&[(2 << 20, 2 << 20), (GIB, GIB)]),
                with(&[(2 << 20, 2 << 20), (GIB, GIB)]),
            ),
        ];
        pod.spec.init_containers = vec![container(
            "i",
            with(&[(2 << 20, 5 << 20)]),
            with(&[(2 << 20, 5 << 20)]),
        )];
        assert_eq!(
            totals(&pod).hugepages,
            BTreeMap::from([(2 << 20, 6 << 20), (GIB, GIB)])
        );
    }

    #[test]
    fn a_memory_volume_is_bounded_by_the_pod_and_by_the_node() {
        let mut pod = pod();
        assert_eq!(memory_volume_bound(&pod, 8 * GIB), 8 * GIB);
        pod.spec.containers = vec![container("a", amounts(1, GIB), amounts(1, GIB))];
        assert_eq!(memory_volume_bound(&pod, 8 * GIB), GIB);
        assert_eq!(memory_volume_bound(&pod, GIB / 2), GIB / 2);
    }
}
