//! Tests of `limits`.

use rubelet_cgroup_plan::{CpuQuota, CpuShare, HugepageLimit};

use super::*;

type Named = Vec<(&'static str, Value)>;

fn resources(limits: &LinuxResources, layout: CgroupLayout) -> Named {
    of_resources(limits, layout).into_inner()
}

fn number(name: &'static str, number: u64) -> (&'static str, Value) {
    (name, Value::Number64(number))
}

#[test]
fn lists_of_processors_become_bits() {
    for (list, expected) in [
        ("0", Some(vec![1])),
        ("0-2,7", Some(vec![0b1000_0111])),
        ("9", Some(vec![0, 2])),
        ("", None),
        ("x", None),
        ("0-99999", None),
    ] {
        assert_eq!(bits(list), expected, "{list}");
    }
}

#[test]
fn limits_are_reported_in_the_words_of_each_version() {
    let limits = LinuxResources {
        cpu: Some(Cpu {
            shares: Some(1024),
            quota: Some(50_500),
            period: Some(100_000),
            ..Cpu::default()
        }),
        memory: Some(Memory {
            limit: Some(4096),
            swap: Some(8192),
            ..Memory::default()
        }),
        ..LinuxResources::default()
    };
    let v2 = resources(&limits, CgroupLayout::V2);
    assert_eq!(
        v2,
        [
            number("CPUWeight", 100),
            number("CPUQuotaPeriodUSec", 100_000),
            number("CPUQuotaPerSecUSec", 510_000),
            number("MemoryMax", 4096),
            number("MemorySwapMax", 4096),
        ]
    );
    let v1 = resources(&limits, CgroupLayout::V1);
    assert!(v1.contains(&number("CPUShares", 1024)), "{v1:?}");
    assert!(v1.contains(&number("MemoryLimit", 4096)), "{v1:?}");
}

#[test]
fn devices_are_never_wider_than_the_rules_unless_all_are_allowed() {
    let rule = |allow, kind, major, minor| DeviceRule {
        allow,
        kind,
        major,
        minor,
        access: "rw".into(),
    };
    let limits = |devices| LinuxResources {
        devices,
        ..LinuxResources::default()
    };
    let some = limits(vec![
        rule(false, DeviceKind::All, None, None),
        rule(true, DeviceKind::Char, Some(1), Some(3)),
        rule(true, DeviceKind::Char, Some(136), None),
    ]);
    let some = resources(&some, CgroupLayout::V2);
    assert_eq!(some[0], ("DevicePolicy", Value::Text("strict".into())));
    let pair = |name: &str| (name.to_owned(), "rw".to_owned());
    let pairs = vec![pair("/dev/char/1:3"), pair("char-136")];
    assert_eq!(some[1], ("DeviceAllow", Value::Pairs(pairs)));
    let all = resources(
        &limits(vec![rule(true, DeviceKind::All, None, None)]),
        CgroupLayout::V2,
    );
    assert_eq!(all[0], ("DevicePolicy", Value::Text("auto".into())));
}

#[test]
fn unified_values_map_to_the_properties_that_runc_sets() {
    for (file, value, expected) in [
        ("memory.swap.max", "0", vec![number("MemorySwapMax", 0)]),
        (
            "memory.swap.max",
            "max",
            vec![number("MemorySwapMax", NO_LIMIT)],
        ),
        (
            "memory.swap.max",
            " 1500\n",
            vec![number("MemorySwapMax", 1500)],
        ),
        ("memory.min", "1500", vec![number("MemoryMin", 1500)]),
        ("memory.low", "0", vec![number("MemoryLow", 0)]),
        ("memory.high", "max", vec![number("MemoryHigh", NO_LIMIT)]),
        // systemd rejects 0.
        ("memory.high", "0", vec![number("MemoryHigh", 1)]),
        ("memory.max", "0", vec![number("MemoryMax", 1)]),
        ("pids.max", "0", vec![number("TasksMax", 1)]),
        ("pids.max", "max", vec![number("TasksMax", NO_LIMIT)]),
        ("cpu.weight", "1", vec![number("CPUWeight", 1)]),
        (
            "cpuset.cpus",
            "0-1",
            vec![("AllowedCPUs", Value::Bytes(vec![3]))],
        ),
        (
            "cpuset.mems",
            "0",
            vec![("AllowedMemoryNodes", Value::Bytes(vec![1]))],
        ),
        // Files without a property, and invalid values.
        ("memory.oom.group", "1", vec![]),
        ("hugetlb.2MB.max", "0", vec![]),
        ("memory.max", "1G", vec![]),
        ("cpu.weight", "0", vec![]),
        ("cpu.weight", "10001", vec![]),
        ("cpu.max", "", vec![]),
        ("cpu.max", "1 x", vec![]),
    ] {
        let limits = LinuxResources {
            unified: [(file.to_owned(), value.to_owned())].into(),
            ..LinuxResources::default()
        };
        let found = resources(&limits, CgroupLayout::V2);
        assert_eq!(found, expected, "{file} {value:?}");
        // The runtime rejects them on version 1.
        assert_eq!(resources(&limits, CgroupLayout::Hybrid), [], "{file}");
    }
}

#[test]
fn cpu_max_is_parsed_with_and_without_a_period() {
    let properties = |value: &str| {
        let limits = LinuxResources {
            unified: [("cpu.max".to_owned(), value.to_owned())].into(),
            ..LinuxResources::default()
        };
        resources(&limits, CgroupLayout::V2)
    };
    let quota = |value| number("CPUQuotaPerSecUSec", value);
    let period = number("CPUQuotaPeriodUSec", 50_000);
    assert_eq!(properties("50000"), [quota(500_000)]);
    assert_eq!(properties("25000 50000"), [period.clone(), quota(500_000)]);
    assert_eq!(properties("max"), [quota(NO_LIMIT)]);
    assert_eq!(properties("max 50000"), [period, quota(NO_LIMIT)]);
}

#[test]
fn a_unified_value_replaces_the_limit() {
    let limits = LinuxResources {
        memory: Some(Memory {
            limit: Some(4096),
            swap: Some(8192),
            ..Memory::default()
        }),
        unified: [("memory.swap.max".to_owned(), "0".to_owned())].into(),
        ..LinuxResources::default()
    };
    assert_eq!(
        resources(&limits, CgroupLayout::V2),
        [number("MemoryMax", 4096), number("MemorySwapMax", 0)]
    );
}

#[test]
fn values_map_to_the_properties_of_each_cgroup_version() {
    let values = CgroupValues {
        cpu: Some(CpuShare {
            shares: 512,
            weight: 20,
        }),
        cpu_quota: Some(CpuQuota {
            quota_us: Some(50_500),
            period_us: 100_000,
        }),
        memory_limit: Some(1 << 20),
        memory_min: None,
        memory_low: None,
        pids_limit: Some(100),
        hugepages: vec![HugepageLimit {
            page_size: 2 << 20,
            limit: 0,
        }],
    };
    let all = [
        number("CPUQuotaPeriodUSec", 100_000),
        number("CPUQuotaPerSecUSec", 510_000),
    ];
    for (layout, weight, memory) in [
        (CgroupLayout::V2, number("CPUWeight", 20), "MemoryMax"),
        (CgroupLayout::V1, number("CPUShares", 512), "MemoryLimit"),
        (
            CgroupLayout::Hybrid,
            number("CPUShares", 512),
            "MemoryLimit",
        ),
    ] {
        let mut expected = vec![weight];
        expected.extend(all.clone());
        expected.extend([number(memory, 1 << 20), number("TasksMax", 100)]);
        assert_eq!(of_values(&values, layout).into_inner(), expected);
    }
    assert!(of_values(&CgroupValues::default(), CgroupLayout::V2).is_empty());
}

#[test]
fn lifted_limits_map_to_infinity() {
    let values = CgroupValues {
        cpu_quota: Some(CpuQuota {
            quota_us: None,
            period_us: 100_000,
        }),
        memory_limit: Some(9_223_372_036_854_775_807),
        ..CgroupValues::default()
    };
    assert_eq!(
        of_values(&values, CgroupLayout::V2).into_inner(),
        [
            number("CPUQuotaPeriodUSec", 100_000),
            number("CPUQuotaPerSecUSec", NO_LIMIT),
            number("MemoryMax", NO_LIMIT),
        ]
    );
}
