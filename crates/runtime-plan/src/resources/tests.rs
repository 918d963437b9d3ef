//! Limits as kubelets and operators ask for them.

use super::*;
use crate::host::tests::host;

fn wanted() -> v1::LinuxContainerResources {
    v1::LinuxContainerResources {
        cpu_period: 100_000,
        cpu_quota: 50_000,
        cpu_shares: 512,
        memory_limit_in_bytes: 64 << 20,
        oom_score_adj: 900,
        hugepage_limits: vec![v1::HugepageLimit {
            page_size: "2MB".into(),
            limit: 4 << 20,
        }],
        unified: [("memory.high".to_owned(), "32M".to_owned())].into(),
        ..Default::default()
    }
}

#[test]
fn what_was_asked_for_is_what_a_status_tells() {
    let asked = wanted();
    let made = create(&asked, &host()).unwrap();
    let told = to_cri(&made, oom_score_adj(&asked).unwrap());
    let with_swap = v1::LinuxContainerResources {
        memory_swap_limit_in_bytes: asked.memory_limit_in_bytes,
        ..asked
    };
    assert_eq!(told, with_swap);
}

#[test]
fn an_update_leaves_alone_what_it_does_not_name() {
    let made = create(&wanted(), &host()).unwrap();
    let update = v1::LinuxContainerResources {
        cpu_quota: -1,
        hugepage_limits: vec![v1::HugepageLimit {
            page_size: "2MB".into(),
            limit: 0,
        }],
        ..Default::default()
    };
    let merged = merge(&made, &update, &host()).unwrap();
    let cpu = merged.cpu.clone().unwrap();
    assert_eq!((cpu.quota, cpu.shares), (Some(-1), Some(512)));
    assert_eq!(merged.memory, made.memory);
    assert_eq!(merged.hugepage_limits.len(), 1);
    assert_eq!(merged.hugepage_limits[0].limit, 0);
    assert_eq!(
        merge(&merged, &v1::LinuxContainerResources::default(), &host()),
        Ok(merged)
    );
}

#[test]
fn a_container_does_not_swap_unless_that_is_asked_for() {
    let limited = v1::LinuxContainerResources {
        memory_limit_in_bytes: 100,
        ..Default::default()
    };
    let swap = |wanted: &_, host: &_| create(wanted, host).map(|made| made.memory.unwrap().swap);
    assert_eq!(swap(&limited, &host()), Ok(Some(100)));
    let without = HostFacts {
        swap: false,
        ..host()
    };
    assert_eq!(swap(&limited, &without), Ok(None));
    let swaps = v1::LinuxContainerResources {
        memory_swap_limit_in_bytes: 300,
        ..limited.clone()
    };
    assert_eq!(swap(&swaps, &host()), Ok(Some(300)));
    assert!(swap(&swaps, &without).is_err());
    let below = v1::LinuxContainerResources {
        memory_swap_limit_in_bytes: 50,
        ..limited
    };
    assert!(swap(&below, &host()).is_err());
}

#[test]
fn values_that_no_cgroup_takes_are_refused() {
    let v1_host = HostFacts {
        cgroups: CgroupLayout::V1,
        hugetlb: false,
        ..host()
    };
    assert!(create(&wanted(), &v1_host).is_err());
    let base = v1::LinuxContainerResources::default;
    let unified = |file: &str| v1::LinuxContainerResources {
        unified: [(file.to_owned(), "1".to_owned())].into(),
        ..base()
    };
    for bad in [
        v1::LinuxContainerResources {
            cpu_period: 10,
            ..base()
        },
        v1::LinuxContainerResources {
            cpu_quota: -2,
            ..base()
        },
        v1::LinuxContainerResources {
            cpu_shares: -1,
            ..base()
        },
        v1::LinuxContainerResources {
            memory_limit_in_bytes: -2,
            ..base()
        },
        v1::LinuxContainerResources {
            cpuset_cpus: "3-1".into(),
            ..base()
        },
        v1::LinuxContainerResources {
            cpuset_mems: "a".into(),
            ..base()
        },
        unified("cgroup.procs"),
        unified("../memory.max"),
        unified("a/memory.max"),
        unified("memory"),
    ] {
        assert!(create(&bad, &host()).is_err(), "{bad:?}");
    }
    let bad = v1::LinuxContainerResources {
        oom_score_adj: -1001,
        ..base()
    };
    assert!(oom_score_adj(&bad).is_err());
}
