//! Tests of `tree_values`.

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
