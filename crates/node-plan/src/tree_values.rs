//! What each cgroup of the tree is limited to: `kubepods`, the tiers, the pods.

use std::collections::BTreeMap;

use rubelet_api::{
    pod::Pod,
    resources::{Bytes, MilliCpu, QosClass},
};
use rubelet_cgroup_plan::{CgroupValues, CpuQuota, CpuShare, HugepageLimit, cpu};

use crate::pod_resources::totals;

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

/// The values of a pod's cgroup. Limits of processor and memory are set only if every container has
/// one; each size of huge pages is limited to what is requested, so to nothing by default.
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
    // A size that the kernel does not support stays in the list: writing it then fails and is
    // reported, instead of the pod running without the pages that it requested.
    let mut limits: BTreeMap<Bytes, Bytes> = page_sizes.iter().map(|&size| (size, 0)).collect();
    limits.extend(amounts);
    limits
        .into_iter()
        .map(|(page_size, limit)| HugepageLimit { page_size, limit })
        .collect()
}

#[cfg(test)]
mod tests;
