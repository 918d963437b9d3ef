//! What each cgroup of the tree is limited to: `kubepods`, the tiers, the pods.

use std::collections::BTreeMap;

use rubelet_api::{
    pod::Pod,
    resources::{Bytes, MilliCpu, QosClass},
};
use rubelet_base::cgroup::{CgroupValues, CpuQuota, CpuShare, HugepageLimit};

use crate::{cpu, pod_resources::totals};

/// The kernel takes what is more than it can count as no limit, in both cgroup versions.
const NO_MEMORY_LIMIT: Bytes = i64::MAX as Bytes;

/// Settings of the node that take part in a pod's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSettings {
    /// `cpuCFSQuota`: whether processor limits are enforced at all.
    pub cpu_cfs_quota: bool,
    /// `cpuCFSQuotaPeriod` in microseconds; 100 ms by default.
    pub cpu_cfs_quota_period_us: u64,
    /// `podPidsLimit`, where it is positive.
    pub pod_pids_limit: Option<u64>,
    /// Sizes of huge pages that the kernel knows, in bytes.
    pub page_sizes: Vec<Bytes>,
}

/// What all pods of the node may use together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubepodsAmounts {
    /// Thousandths of a core.
    pub cpu: MilliCpu,
    /// Bytes.
    pub memory: Bytes,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Huge pages: page size and bytes.
    pub hugepages: BTreeMap<Bytes, Bytes>,
}

/// The values of `kubepods`. The share matters even where nothing is enforced: the default of a
/// new cgroup is that of a single core.
#[must_use]
pub fn kubepods_values(amounts: &KubepodsAmounts, page_sizes: &[Bytes]) -> CgroupValues {
    CgroupValues {
        cpu: Some(cpu::share(amounts.cpu)),
        cpu_quota: None,
        memory_limit: Some(amounts.memory),
        pids_limit: amounts.pids,
        hugepages: hugepage_limits(page_sizes, &amounts.hugepages),
    }
}

/// The values of a tier, given the pods of the node. Burstable has the sum of its pods' requests,
/// BestEffort always the least share. `None` for Guaranteed, which has no tier of its own.
pub fn tier_values<'a>(
    qos: QosClass,
    pods: impl IntoIterator<Item = &'a Pod>,
    page_sizes: &[Bytes],
) -> Option<CgroupValues> {
    let request = match qos {
        QosClass::Guaranteed => return None,
        QosClass::BestEffort => 0,
        QosClass::Burstable => pods
            .into_iter()
            .filter(|pod| pod.spec.qos == QosClass::Burstable)
            .fold(0u64, |sum, pod| sum.saturating_add(totals(pod).cpu_request)),
    };
    let unbounded = |&page_size| HugepageLimit {
        page_size,
        limit: HugepageLimit::UNBOUNDED,
    };
    Some(CgroupValues {
        cpu: Some(cpu::share(request)),
        hugepages: page_sizes.iter().map(unbounded).collect(),
        ..CgroupValues::default()
    })
}

/// The values of a pod's cgroup. Limits of processor and memory are set only if every container
/// has one; each size of huge pages is limited to what is asked for, so to nothing by default.
#[must_use]
pub fn pod_values(pod: &Pod, settings: &PodSettings) -> CgroupValues {
    let totals = totals(pod);
    let mut values = CgroupValues {
        cpu: Some(CpuShare {
            shares: cpu::MIN_SHARES,
            weight: cpu::weight(cpu::MIN_SHARES),
        }),
        pids_limit: settings.pod_pids_limit,
        hugepages: hugepage_limits(&settings.page_sizes, &totals.hugepages),
        ..CgroupValues::default()
    };
    if pod.spec.qos != QosClass::BestEffort {
        values.cpu = Some(cpu::share(totals.cpu_request));
        values.memory_limit = totals.memory_limit;
        values.cpu_quota = totals.cpu_limit.map(|limit| {
            cpu::quota(
                limit,
                settings.cpu_cfs_quota_period_us,
                settings.cpu_cfs_quota,
            )
        });
    }
    values
}

/// What takes away limits that a pod may have had before an edit and has no longer. A cgroup that
/// is new has none.
#[must_use]
pub fn lifted_limits(values: &CgroupValues, settings: &PodSettings) -> CgroupValues {
    let no_quota = CpuQuota {
        quota_us: None,
        period_us: settings.cpu_cfs_quota_period_us,
    };
    CgroupValues {
        cpu_quota: values.cpu_quota.is_none().then_some(no_quota),
        memory_limit: values.memory_limit.is_none().then_some(NO_MEMORY_LIMIT),
        ..CgroupValues::default()
    }
}

fn hugepage_limits(page_sizes: &[Bytes], amounts: &BTreeMap<Bytes, Bytes>) -> Vec<HugepageLimit> {
    // A size that the kernel doesn't know stays in the list: writing it then fails and is told,
    // instead of the pod running without the pages it asked for.
    let mut limits: BTreeMap<Bytes, Bytes> = page_sizes.iter().map(|&size| (size, 0)).collect();
    limits.extend(amounts);
    limits
        .into_iter()
        .map(|(page_size, limit)| HugepageLimit { page_size, limit })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_pods::{amounts, container, pod};
    use rubelet_api::resources::ResourceAmounts;

    const MIB: u64 = 1 << 20;

    fn settings() -> PodSettings {
        PodSettings {
            cpu_cfs_quota: true,
            cpu_cfs_quota_period_us: 100_000,
            pod_pids_limit: None,
            page_sizes: vec![2 * MIB],
        }
    }

    fn pod_of(qos: QosClass, requests: ResourceAmounts, limits: ResourceAmounts) -> Pod {
        let mut pod = pod();
        pod.spec.qos = qos;
        pod.spec.containers = vec![container("a", requests, limits)];
        pod
    }

    #[test]
    fn limits_that_a_pod_no_longer_has_are_taken_away() {
        let limited = pod_of(
            QosClass::Guaranteed,
            amounts(500, 64 * MIB),
            amounts(500, 64 * MIB),
        );
        let values = pod_values(&limited, &settings());
        assert_eq!(
            lifted_limits(&values, &settings()),
            CgroupValues::default(),
            "what it has stays"
        );
        let free = pod_of(
            QosClass::Burstable,
            amounts(500, 64 * MIB),
            ResourceAmounts::default(),
        );
        let lifted = lifted_limits(&pod_values(&free, &settings()), &settings());
        assert_eq!(lifted.cpu_quota.map(|quota| quota.quota_us), Some(None));
        assert_eq!(lifted.memory_limit, Some(9_223_372_036_854_775_807));
        assert_eq!(lifted.cpu, None);
    }

    #[test]
    fn a_guaranteed_pod_has_shares_quota_and_memory() {
        let pod = pod_of(
            QosClass::Guaranteed,
            amounts(500, 64 * MIB),
            amounts(500, 64 * MIB),
        );
        let values = pod_values(&pod, &settings());
        let cpu = CpuShare {
            shares: 512,
            weight: 20,
        };
        let quota = CpuQuota {
            quota_us: Some(50_000),
            period_us: 100_000,
        };
        assert_eq!(values.cpu, Some(cpu));
        assert_eq!(values.cpu_quota, Some(quota));
        assert_eq!(values.memory_limit, Some(64 * MIB));
        assert_eq!(values.pids_limit, None);
        let none = HugepageLimit {
            page_size: 2 * MIB,
            limit: 0,
        };
        assert_eq!(values.hugepages, [none]);
    }

    #[test]
    fn a_burstable_pod_is_limited_only_where_all_containers_are() {
        let only_cpu = ResourceAmounts {
            cpu: Some(200),
            ..Default::default()
        };
        let pod = pod_of(QosClass::Burstable, amounts(100, MIB), only_cpu);
        let values = pod_values(&pod, &settings());
        assert_eq!(values.cpu.map(|cpu| cpu.shares), Some(102));
        assert_eq!(
            values.cpu_quota.and_then(|quota| quota.quota_us),
            Some(20_000)
        );
        assert_eq!(values.memory_limit, None);
    }

    #[test]
    fn a_best_effort_pod_has_the_least_share_and_no_limit() {
        let values = pod_values(&pod(), &settings());
        assert_eq!(
            values.cpu,
            Some(CpuShare {
                shares: 2,
                weight: 1
            })
        );
        assert_eq!((values.cpu_quota, values.memory_limit), (None, None));
    }

    #[test]
    fn settings_lift_quotas_and_limit_processes() {
        let settings = PodSettings {
            cpu_cfs_quota: false,
            pod_pids_limit: Some(100),
            ..settings()
        };
        let pod = pod_of(QosClass::Guaranteed, amounts(500, MIB), amounts(500, MIB));
        let values = pod_values(&pod, &settings);
        assert_eq!(values.cpu_quota.map(|quota| quota.quota_us), Some(None));
        assert_eq!(values.pids_limit, Some(100));
    }

    #[test]
    fn tiers_follow_their_pods() {
        let pods = [
            pod_of(
                QosClass::Burstable,
                amounts(300, MIB),
                ResourceAmounts::default(),
            ),
            pod_of(
                QosClass::Burstable,
                amounts(700, MIB),
                ResourceAmounts::default(),
            ),
            pod_of(QosClass::Guaranteed, amounts(4000, MIB), amounts(4000, MIB)),
        ];
        let shares = |qos| {
            let values = tier_values(qos, &pods, &[2 * MIB])?;
            assert_eq!(values.hugepages[0].limit, HugepageLimit::UNBOUNDED);
            values.cpu.map(|cpu| cpu.shares)
        };
        assert_eq!(shares(QosClass::Burstable), Some(1024));
        assert_eq!(shares(QosClass::BestEffort), Some(2));
        assert_eq!(shares(QosClass::Guaranteed), None);
    }

    #[test]
    fn kubepods_has_the_whole_node() {
        let amounts = KubepodsAmounts {
            cpu: 2000,
            memory: 1 << 30,
            ..Default::default()
        };
        let values = kubepods_values(&amounts, &[2 * MIB]);
        assert_eq!(values.cpu.map(|cpu| cpu.shares), Some(2048));
        assert_eq!(values.memory_limit, Some(1 << 30));
        assert_eq!(values.hugepages[0].limit, 0);
    }
}
