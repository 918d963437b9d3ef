//! The feature gate MemoryQoS: memory that the kernel does not reclaim while others have more than
//! they requested, and an amount above which it slows a container down. With cgroup version 2 only.
//!
//! Source of the rules: `generateLinuxContainerResources` in `pkg/kubelet/kuberuntime`, and
//! `ResourceConfigForPod` and `setMemoryQoS` in `pkg/kubelet/cm` of Kubernetes 1.36.

use std::collections::BTreeMap;

use rubelet_api::{
    container::Container,
    pod::Pod,
    resources::{Bytes, QosClass},
};

use crate::pod_resources::totals;

/// Settings of a node with the feature gate and cgroup version 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryQos {
    /// `memoryThrottlingFactor`: the part of what is between request and limit that a container may
    /// use before it is slowed down, more than 0, at most 1.
    pub throttling_factor: f64,
    /// Whether `memoryReservationPolicy` is `TieredReservation`: what pods request is protected.
    pub protects: bool,
    /// Memory that pods may use, in bytes: the limit of a container that has none.
    pub allocatable: Bytes,
    /// The size of a page of memory in bytes.
    pub page_size: Bytes,
}

/// Memory that is protected in a cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtectedMemory {
    /// `memory.min`: never reclaimed.
    pub min: Bytes,
    /// `memory.low`: reclaimed if nothing else is left.
    pub low: Bytes,
}

/// The memory that the pods of a node request, in bytes, by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QosRequests {
    /// Of Guaranteed pods.
    pub guaranteed: Bytes,
    /// Of Burstable pods.
    pub burstable: Bytes,
}

impl QosRequests {
    /// Adds up the pods of a node.
    pub fn of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> Self {
        let mut sums = Self::default();
        for pod in pods {
            let sum = match pod.spec.qos {
                QosClass::Guaranteed => &mut sums.guaranteed,
                QosClass::Burstable => &mut sums.burstable,
                QosClass::BestEffort => continue,
            };
            *sum = sum.saturating_add(totals(pod).memory_request);
        }
        sums
    }
}

impl MemoryQos {
    /// What is protected of an amount that a pod of this class requests.
    fn protected(&self, qos: QosClass, request: Bytes) -> ProtectedMemory {
        match qos {
            _ if !self.protects => ProtectedMemory::default(),
            QosClass::Guaranteed => ProtectedMemory {
                min: request,
                low: 0,
            },
            QosClass::Burstable | QosClass::BestEffort => ProtectedMemory {
                min: 0,
                low: request,
            },
        }
    }

    /// What is protected in the cgroup of a pod.
    #[must_use]
    pub fn of_pod(&self, pod: &Pod) -> ProtectedMemory {
        self.protected(pod.spec.qos, totals(pod).memory_request)
    }

    /// `memory.min` of the cgroup of all pods, and `memory.low` of the Burstable tier, in bytes. A
    /// parent must have what its children have, or the kernel protects less of them.
    #[must_use]
    pub fn of_tiers(&self, requests: QosRequests) -> (Bytes, Bytes) {
        match self.protects {
            true => (
                requests.guaranteed.saturating_add(requests.burstable),
                requests.burstable,
            ),
            false => (0, 0),
        }
    }

    /// The files of a container's cgroup, and their contents.
    #[must_use]
    pub fn of_container(&self, pod: &Pod, container: &Container) -> BTreeMap<String, String> {
        let resources = &container.resources;
        let request = resources.requests.memory.unwrap_or(0);
        let limit = resources.limits.memory.unwrap_or(0);
        let protected = self.protected(pod.spec.qos, request);
        let mut files = BTreeMap::new();
        // Of one that has a request, only one of the two is written; the other one is 0 anyway.
        if protected.min > 0 || protected.low == 0 {
            files.insert("memory.min".to_owned(), protected.min.to_string());
        }
        if protected.low > 0 || protected.min == 0 {
            files.insert("memory.low".to_owned(), protected.low.to_string());
        }
        let high = self.high(request, if limit > 0 { limit } else { self.allocatable });
        if request != limit && high > request {
            files.insert("memory.high".to_owned(), high.to_string());
        }
        files
    }

    /// The request and a part of the rest, in whole pages.
    fn high(&self, request: Bytes, limit: Bytes) -> Bytes {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "amounts of memory are far below 2^53, the result is between two of them"
        )]
        let high = (request as f64 + limit.saturating_sub(request) as f64 * self.throttling_factor)
            .floor() as Bytes;
        let page = self.page_size.max(1);
        high / page * page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::{amounts, container, pod};

    const GIB: u64 = 1 << 30;

    fn qos(protects: bool) -> MemoryQos {
        MemoryQos {
            throttling_factor: 0.9,
            protects,
            allocatable: 10 * GIB,
            page_size: 4096,
        }
    }

    fn pod_of(qos: QosClass, request: u64, limit: u64) -> Pod {
        let mut pod = pod();
        pod.spec.qos = qos;
        pod.spec.containers = vec![container("a", amounts(1, request), amounts(1, limit))];
        pod
    }

    fn files(qos: &MemoryQos, pod: &Pod) -> Vec<String> {
        let files = qos.of_container(pod, &pod.spec.containers[0]);
        files
            .iter()
            .map(|(file, value)| format!("{file}={value}"))
            .collect()
    }

    #[test]
    fn a_container_is_slowed_down_before_its_limit() {
        use QosClass::{BestEffort, Burstable, Guaranteed};
        for (class, request, limit, high) in [
            (Guaranteed, GIB, GIB, None),
            (Burstable, GIB, 2 * GIB, Some(2_040_107_008)),
            // Without a limit that of the node counts.
            (Burstable, GIB, 0, Some(9_771_048_960_u64)),
            (BestEffort, 0, 0, None),
        ] {
            let found = files(&qos(false), &pod_of(class, request, limit));
            assert_eq!(
                found[found.len() - 2..],
                ["memory.low=0", "memory.min=0"],
                "{found:?}"
            );
            let found = (found.len() == 3).then(|| found[0].clone());
            assert_eq!(
                found,
                high.map(|high| format!("memory.high={high}")),
                "{class:?}"
            );
        }
    }

    #[test]
    fn requests_are_protected_by_class() {
        let guaranteed = pod_of(QosClass::Guaranteed, GIB, GIB);
        let burstable = pod_of(QosClass::Burstable, GIB / 2, GIB / 2);
        assert_eq!(files(&qos(true), &guaranteed), ["memory.min=1073741824"]);
        assert_eq!(files(&qos(true), &burstable), ["memory.low=536870912"]);
        let of = |min, low| ProtectedMemory { min, low };
        assert_eq!(qos(true).of_pod(&guaranteed), of(GIB, 0));
        assert_eq!(qos(true).of_pod(&burstable), of(0, GIB / 2));
        let requests =
            QosRequests::of(&[guaranteed, burstable, pod_of(QosClass::BestEffort, 0, 0)]);
        assert_eq!(qos(true).of_tiers(requests), (GIB + GIB / 2, GIB / 2));
        assert_eq!(qos(false).of_tiers(requests), (0, 0));
    }
}
