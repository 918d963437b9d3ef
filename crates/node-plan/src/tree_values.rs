//! What each cgroup of the tree is limited to: `kubepods`, the tiers, the pods.

use std::collections::BTreeMap;

use rubelet_api::{
    pod::Pod,
    resources::{Bytes, MilliCpu, QosClass},
};
use rubelet_cgroup_plan::{CgroupValues, CpuQuota, CpuShare, HugepageLimit, cpu};

use crate::{
    memory_qos::{MemoryQos, QosRequests},
    pod_resources::totals,
};

/// The kernel takes what is more than it can count as no limit, in both cgroup versions.
const NO_MEMORY_LIMIT: Bytes = i64::MAX as Bytes;

/// Settings of the node that take part in a pod's values.
#[derive(Debug, Clone, PartialEq)]
pub struct PodSettings {
    /// `cpuCFSQuota`: whether processor limits are enforced at all.
    pub cpu_cfs_quota: bool,
    /// `cpuCFSQuotaPeriod` in microseconds; 100 ms by default.
    pub cpu_cfs_quota_period_us: u64,
    /// `podPidsLimit`, where it is positive.
    pub pod_pids_limit: Option<u64>,
    /// Sizes of huge pages that the kernel knows, in bytes.
    pub page_sizes: Vec<Bytes>,
    /// The feature gate MemoryQoS; `None` if it is off, and with cgroup version 1.
    pub memory_qos: Option<MemoryQos>,
}

/// Settings of the node that take part in the values of `kubepods` and the tiers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierSettings<'a> {
    /// Sizes of huge pages that the kernel knows, in bytes.
    pub page_sizes: &'a [Bytes],
    /// The feature gate MemoryQoS; `None` if it is off, and with cgroup version 1.
    pub memory_qos: Option<MemoryQos>,
    /// `qosReserved` of memory, in percent; `None` if it is not set.
    pub memory_reserved: Option<u8>,
    /// What is not reserved of the machine's memory, in bytes.
    pub allocatable: Bytes,
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

/// The values of `kubepods`, given what the pods of the node request. The share matters even where
/// nothing is enforced: the default of a new cgroup is that of a single core.
#[must_use]
pub fn kubepods_values(
    amounts: &KubepodsAmounts,
    requests: QosRequests,
    settings: &TierSettings<'_>,
) -> CgroupValues {
    let qos = settings.memory_qos;
    CgroupValues {
        cpu: Some(cpu::share(amounts.cpu)),
        memory_limit: Some(amounts.memory),
        memory_min: qos.map(|qos| qos.of_tiers(requests).0),
        pids_limit: amounts.pids,
        hugepages: hugepage_limits(settings.page_sizes, &amounts.hugepages),
        ..CgroupValues::default()
    }
}

/// The values of a tier, given the pods of the node and what they request. Burstable has the sum of
/// its pods' requests, BestEffort always the least share. `None` for Guaranteed, which has no tier of
/// its own. With `qosReserved`, a part of what the higher classes request is withheld from a tier.
pub fn tier_values<'a>(
    qos: QosClass,
    pods: impl IntoIterator<Item = &'a Pod>,
    requests: QosRequests,
    settings: &TierSettings<'_>,
) -> Option<CgroupValues> {
    let TierSettings {
        page_sizes,
        memory_qos,
        memory_reserved,
        allocatable,
    } = *settings;
    let left = |requested: Bytes| {
        let percent = memory_reserved?;
        let withheld = u128::from(requested) * u128::from(percent) / 100;
        Some(allocatable.saturating_sub(Bytes::try_from(withheld).unwrap_or(Bytes::MAX)))
    };
    let (request, memory_limit, memory_low) = match qos {
        QosClass::Guaranteed => return None,
        QosClass::BestEffort => {
            let all = requests.guaranteed.saturating_add(requests.burstable);
            (0, left(all), None)
        }
        QosClass::Burstable => {
            let tier = pods
                .into_iter()
                .filter(|pod| pod.spec.qos == QosClass::Burstable);
            let request = tier.fold(0u64, |sum, pod| sum.saturating_add(totals(pod).cpu_request));
            let low = memory_qos.map(|qos| qos.of_tiers(requests).1);
            (request, left(requests.guaranteed), low)
        }
    };
    let unbounded = |&page_size| HugepageLimit {
        page_size,
        limit: HugepageLimit::UNBOUNDED,
    };
    Some(CgroupValues {
        cpu: Some(cpu::share(request)),
        memory_limit,
        memory_low,
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
    if let Some(qos) = &settings.memory_qos {
        let protected = qos.of_pod(pod);
        values.memory_min = Some(protected.min);
        values.memory_low = Some(protected.low);
    }
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
