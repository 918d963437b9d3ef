//! Tests of `container_resources`.

use rubelet_api::{
    pod::PodSource,
    resources::{ResourceAmounts, Resources},
};

use super::*;
use crate::test_pods::{amounts, container, pod};

const GIB: u64 = 1 << 30;

fn settings(cgroup_layout: CgroupLayout) -> ContainerSettings {
    ContainerSettings {
        cgroup_layout,
        cpu_cfs_quota: true,
        cpu_cfs_quota_period_us: 100_000,
        single_process_oom_kill: false,
        memory_capacity: 8 * GIB,
        swap_capacity: 4 * GIB,
        swap_controller: true,
        swap_behavior: SwapBehavior::NoSwap,
        page_sizes: vec![2 << 20, GIB],
        memory_qos: None,
    }
}

fn burstable(requests: ResourceAmounts, limits: ResourceAmounts) -> Pod {
    let mut pod = pod();
    pod.spec.qos = QosClass::Burstable;
    pod.spec.containers = vec![container("a", requests, limits)];
    pod
}

fn limits(pod: &Pod, settings: &ContainerSettings) -> ContainerLimits {
    container_limits(pod, &pod.spec.containers[0], settings)
}

#[test]
fn requests_and_limits_become_the_kernels_numbers() {
    let pod = burstable(amounts(250, GIB), amounts(500, 2 * GIB));
    let limits = limits(&pod, &settings(CgroupLayout::V2));
    assert_eq!(limits.cpu_shares, 256);
    assert_eq!((limits.cpu_quota, limits.cpu_period), (50_000, 100_000));
    assert_eq!(limits.memory_limit, 2 * GIB);
    assert_eq!(limits.memory_swap_limit, 0);
    assert_eq!(limits.oom_score_adj, 875);
    assert_eq!(limits.hugepages, [("2MB".into(), 0), ("1GB".into(), 0)]);
    let unified = [("memory.oom.group", "1"), ("memory.swap.max", "0")];
    let unified = unified.map(|(file, value)| (file.to_owned(), value.to_owned()));
    assert_eq!(limits.unified, BTreeMap::from(unified));
}

#[test]
fn version_1_forbids_swap_by_equal_limits_and_has_no_unified_files() {
    let pod = burstable(amounts(250, GIB), amounts(500, 2 * GIB));
    let limits = limits(&pod, &settings(CgroupLayout::V1));
    assert_eq!(limits.memory_swap_limit, 2 * GIB);
    assert!(limits.unified.is_empty());
}

#[test]
fn a_container_without_resources_has_the_least_share_and_no_quota() {
    let limits = limits(&pod(), &settings(CgroupLayout::V2));
    assert_eq!(limits.cpu_shares, 2);
    assert_eq!((limits.cpu_quota, limits.cpu_period), (0, 100_000));
    assert_eq!(limits.memory_limit, 0);
    assert_eq!(limits.oom_score_adj, 1000);
}

#[test]
fn settings_switch_off_quota_group_kill_and_swap_limits() {
    let settings = ContainerSettings {
        cpu_cfs_quota: false,
        single_process_oom_kill: true,
        swap_controller: false,
        ..settings(CgroupLayout::V2)
    };
    let pod = burstable(amounts(250, GIB), amounts(500, 2 * GIB));
    let limits = limits(&pod, &settings);
    assert_eq!((limits.cpu_quota, limits.cpu_period), (0, 0));
    assert!(limits.unified.is_empty());
}

#[test]
fn limited_swap_is_for_burstable_pods_that_are_not_critical() {
    let settings = ContainerSettings {
        swap_behavior: SwapBehavior::LimitedSwap,
        ..settings(CgroupLayout::V2)
    };
    let swap = |pod: &Pod| limits(pod, &settings).unified["memory.swap.max"].clone();
    let mut pod = burstable(amounts(250, 2 * GIB), amounts(500, 4 * GIB));
    assert_eq!(swap(&pod), "0", "static pods are critical");
    pod.source = PodSource::Api;
    assert_eq!(swap(&pod), GIB.to_string());
    pod.spec.containers[0].resources.limits.memory = Some(2 * GIB);
    assert_eq!(swap(&pod), "0", "request and limit are equal");
    pod.spec.containers[0].resources.limits.memory = Some(16 * GIB);
    pod.spec.containers[0].resources.requests.memory = Some(9 * GIB);
    assert_eq!(swap(&pod), "0", "the request exceeds the machine");
    pod.spec.containers[0].resources = Default::default();
    assert_eq!(swap(&pod), "0", "no memory is requested");
}

#[test]
fn huge_pages_are_limited_to_what_is_asked_for() {
    let pages = ResourceAmounts {
        hugepages: vec![(2 << 20, 8 << 20)],
        ..amounts(1, 1)
    };
    let pod = burstable(pages.clone(), pages);
    let limits = limits(&pod, &settings(CgroupLayout::V2));
    assert_eq!(
        limits.hugepages,
        [("2MB".into(), 8 << 20), ("1GB".into(), 0)]
    );
}

#[test]
fn a_container_without_a_limit_has_that_of_its_pod() {
    let mut pod = burstable(ResourceAmounts::default(), ResourceAmounts::default());
    let own = ResourceAmounts {
        hugepages: vec![(2 << 20, 4 << 20)],
        ..amounts(500, 2 * GIB)
    };
    pod.spec.resources = Some(Resources {
        requests: own.clone(),
        limits: own,
    });
    let of_pod = limits(&pod, &settings(CgroupLayout::V2));
    assert_eq!((of_pod.cpu_shares, of_pod.cpu_quota), (512, 50_000));
    assert_eq!(of_pod.memory_limit, 2 * GIB);
    assert_eq!(
        of_pod.hugepages,
        [("2MB".into(), 4 << 20), ("1GB".into(), 0)]
    );
    pod.spec.containers = vec![container("a", amounts(100, 1), amounts(200, GIB))];
    let own = limits(&pod, &settings(CgroupLayout::V2));
    assert_eq!((own.cpu_shares, own.cpu_quota), (102, 20_000));
    assert_eq!(own.memory_limit, GIB);
}
