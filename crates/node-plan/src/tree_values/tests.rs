//! Tests of `tree_values`.

use super::*;
use crate::test_pods::{amounts, container, pod};
use rubelet_api::resources::{ResourceAmounts, Resources};

const MIB: u64 = 1 << 20;

fn settings() -> PodSettings {
    PodSettings {
        cpu_cfs_quota: true,
        cpu_cfs_quota_period_us: 100_000,
        pod_pids_limit: None,
        page_sizes: vec![2 * MIB],
        memory_qos: None,
    }
}

const TIERS: TierSettings<'static> = TierSettings {
    page_sizes: &[2 * MIB],
    memory_qos: None,
    memory_reserved: None,
    allocatable: 1000 * MIB,
};

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
        let values = tier_values(qos, &pods, QosRequests::of(&pods), &TIERS)?;
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
    let values = kubepods_values(&amounts, QosRequests::default(), &TIERS);
    assert_eq!(values.cpu.map(|cpu| cpu.shares), Some(2048));
    assert_eq!(values.memory_limit, Some(1 << 30));
    assert_eq!(values.hugepages[0].limit, 0);
}

#[test]
fn a_pods_own_limits_are_those_of_its_cgroup() {
    let mut pod = pod_of(
        QosClass::Guaranteed,
        ResourceAmounts::default(),
        ResourceAmounts::default(),
    );
    pod.spec.resources = Some(Resources {
        requests: amounts(500, 64 * MIB),
        limits: amounts(500, 64 * MIB),
    });
    let values = pod_values(&pod, &settings());
    assert_eq!(values.cpu.map(|cpu| cpu.shares), Some(512));
    let quota = values.cpu_quota.and_then(|quota| quota.quota_us);
    assert_eq!(quota, Some(50_000));
    assert_eq!(values.memory_limit, Some(64 * MIB));
}

#[test]
fn lower_classes_do_not_have_what_higher_ones_request() {
    let both = |qos, memory| pod_of(qos, amounts(1, memory), amounts(1, memory));
    let pods = [
        both(QosClass::Guaranteed, 100 * MIB),
        both(QosClass::Burstable, 200 * MIB),
    ];
    for (percent, burstable, best_effort) in [
        (None, None, None),
        (Some(50), Some(950 * MIB), Some(850 * MIB)),
        (Some(100), Some(900 * MIB), Some(700 * MIB)),
    ] {
        let settings = TierSettings {
            memory_reserved: percent,
            ..TIERS
        };
        let limit = |qos| tier_values(qos, &pods, QosRequests::of(&pods), &settings)?.memory_limit;
        assert_eq!(limit(QosClass::Burstable), burstable, "{percent:?}");
        assert_eq!(limit(QosClass::BestEffort), best_effort, "{percent:?}");
    }
}

#[test]
fn protected_memory_is_in_each_cgroup_above_a_container() {
    let memory_qos = Some(MemoryQos {
        throttling_factor: 0.9,
        protects: true,
        allocatable: 1000 * MIB,
        page_size: 4096,
    });
    let pods = [
        pod_of(
            QosClass::Guaranteed,
            amounts(1, 100 * MIB),
            amounts(1, 100 * MIB),
        ),
        pod_of(
            QosClass::Burstable,
            amounts(1, 200 * MIB),
            ResourceAmounts::default(),
        ),
    ];
    let tiers = TierSettings {
        memory_qos,
        ..TIERS
    };
    let requests = QosRequests::of(&pods);
    let node = kubepods_values(&KubepodsAmounts::default(), requests, &tiers);
    assert_eq!((node.memory_min, node.memory_low), (Some(300 * MIB), None));
    let tier = tier_values(QosClass::Burstable, &pods, requests, &tiers).unwrap();
    assert_eq!((tier.memory_min, tier.memory_low), (None, Some(200 * MIB)));
    let settings = PodSettings {
        memory_qos,
        ..settings()
    };
    let of = |pod| {
        let values = pod_values(pod, &settings);
        (values.memory_min, values.memory_low)
    };
    assert_eq!(of(&pods[0]), (Some(100 * MIB), Some(0)));
    assert_eq!(of(&pods[1]), (Some(0), Some(200 * MIB)));
}
