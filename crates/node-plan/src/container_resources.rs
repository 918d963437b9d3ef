//! The resources of one container for the runtime: the CRI's
//! `LinuxContainerResources`, as plain values.

use std::collections::BTreeMap;

use rubelet_api::{
    container::Container,
    pod::Pod,
    resources::{Bytes, QosClass, ResourceAmounts},
};
use rubelet_cgroup_plan::{CgroupLayout, cpu, page_size_name};

use crate::{critical::is_critical, memory_qos::MemoryQos, oom_score::oom_score_adj};

/// `memorySwap.swapBehavior`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwapBehavior {
    /// Containers never swap. The default.
    NoSwap,
    /// Burstable containers swap in proportion to their memory request.
    LimitedSwap,
}

/// Settings and facts of the node that affect the limits of a container.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerSettings {
    /// Layout of the cgroup hierarchies.
    pub cgroup_layout: CgroupLayout,
    /// `cpuCFSQuota`.
    pub cpu_cfs_quota: bool,
    /// `cpuCFSQuotaPeriod` in microseconds.
    pub cpu_cfs_quota_period_us: u64,
    /// `singleProcessOOMKill`: the kernel kills one process instead of the whole container.
    pub single_process_oom_kill: bool,
    /// Memory of the machine in bytes.
    pub memory_capacity: Bytes,
    /// Swap space of the machine in bytes.
    pub swap_capacity: Bytes,
    /// True if the kernel can limit swap.
    pub swap_controller: bool,
    /// `memorySwap.swapBehavior`.
    pub swap_behavior: SwapBehavior,
    /// Sizes of huge pages that the kernel knows, in bytes.
    pub page_sizes: Vec<Bytes>,
    /// The feature gate MemoryQoS; `None` if it is off, and with cgroup version 1.
    pub memory_qos: Option<MemoryQos>,
}

impl ContainerSettings {
    /// True if an OOM kill ends whole containers, which version 1 can't do.
    #[must_use]
    pub fn kills_groups(&self) -> bool {
        self.cgroup_layout == CgroupLayout::V2 && !self.single_process_oom_kill
    }
}

/// The fields of `LinuxContainerResources`; 0 means not set, as in the CRI.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerLimits {
    /// `cpu_shares`.
    pub cpu_shares: u64,
    /// `cpu_quota` in microseconds.
    pub cpu_quota: u64,
    /// `cpu_period` in microseconds.
    pub cpu_period: u64,
    /// `memory_limit_in_bytes`.
    pub memory_limit: Bytes,
    /// `memory_swap_limit_in_bytes`: memory and swap together, on version 1.
    pub memory_swap_limit: Bytes,
    /// `oom_score_adj`.
    pub oom_score_adj: i64,
    /// `hugepage_limits`: name of the page size and bytes, one entry per size of the machine.
    pub hugepages: Vec<(String, Bytes)>,
    /// `unified`: files of cgroup version 2 and their contents.
    pub unified: BTreeMap<String, String>,
}

/// Computes the limits of one container.
#[must_use]
pub fn container_limits(
    pod: &Pod,
    container: &Container,
    settings: &ContainerSettings,
) -> ContainerLimits {
    let resources = &container.resources;
    let cpu_limit = limit_of(pod, container, |limits| limits.cpu);
    let mut limits = ContainerLimits {
        cpu_shares: cpu::shares(resources.requests.cpu.unwrap_or(cpu_limit)),
        memory_limit: limit_of(pod, container, |limits| limits.memory),
        oom_score_adj: oom_score_adj(pod, container, settings.memory_capacity),
        hugepages: hugepages(pod, container, &settings.page_sizes),
        ..ContainerLimits::default()
    };
    if settings.cpu_cfs_quota {
        limits.cpu_period = settings.cpu_cfs_quota_period_us;
        if cpu_limit > 0 {
            limits.cpu_quota = cpu::quota_us(cpu_limit, settings.cpu_cfs_quota_period_us);
        }
    }
    if settings.kills_groups() {
        limits.unified.insert("memory.oom.group".into(), "1".into());
    }
    if let Some(qos) = &settings.memory_qos {
        limits.unified.extend(qos.of_container(pod, container));
    }
    if settings.swap_controller {
        match settings.cgroup_layout {
            // Equal limits disable swap; without a memory limit the kernel accepts no swap limit.
            CgroupLayout::V1 | CgroupLayout::Hybrid => {
                limits.memory_swap_limit = limits.memory_limit;
            }
            CgroupLayout::V2 => {
                let swap = swap_limit(pod, container, settings);
                limits
                    .unified
                    .insert("memory.swap.max".into(), swap.to_string());
            }
        }
    }
    limits
}

/// The container's limit, or else the pod's: what runs in the container reads its own limit, and can't
/// have more than the pod.
fn limit_of(pod: &Pod, container: &Container, take: fn(&ResourceAmounts) -> Option<u64>) -> u64 {
    let own = take(&container.resources.limits).filter(|limit| *limit > 0);
    let of_pod = || take(&pod.spec.resources.as_ref()?.limits);
    own.or_else(of_pod).unwrap_or(0)
}

fn hugepages(pod: &Pod, container: &Container, page_sizes: &[Bytes]) -> Vec<(String, Bytes)> {
    let of_pod = pod
        .spec
        .resources
        .iter()
        .flat_map(|own| &own.limits.hugepages);
    let own = &container.resources.limits.hugepages;
    let wanted: BTreeMap<Bytes, Bytes> = of_pod.chain(own).copied().collect();
    page_sizes
        .iter()
        .map(|size| {
            (
                page_size_name(*size),
                wanted.get(size).copied().unwrap_or(0),
            )
        })
        .collect()
}

/// Bytes of swap on version 2: the machine's swap in proportion to the memory request.
fn swap_limit(pod: &Pod, container: &Container, settings: &ContainerSettings) -> Bytes {
    let request = container.resources.requests.memory.unwrap_or(0);
    let limit = container.resources.limits.memory.unwrap_or(0);
    let swaps = settings.swap_behavior == SwapBehavior::LimitedSwap
        && pod.spec.qos == QosClass::Burstable
        && !is_critical(pod)
        && request != limit
        && request <= settings.memory_capacity
        && settings.memory_capacity > 0;
    if !swaps {
        return 0;
    }
    let part = u128::from(request) * u128::from(settings.swap_capacity);
    Bytes::try_from(part / u128::from(settings.memory_capacity)).unwrap_or(Bytes::MAX)
}

#[cfg(test)]
mod tests;
