//! Conversions, and the order of writes, on fake trees and by the kernel.

use std::fs;

use rubelet_oci::{Cpu, HugepageLimit, LinuxResources, Memory, Pids};

use crate::cgroup::StatsScope;
use crate::cgroup::tests::{get, path, put, real, temp, v1, v2};

use super::cpu::weight;

fn memory(limit: Option<i64>, swap: Option<i64>) -> LinuxResources {
    LinuxResources {
        memory: Some(Memory {
            limit,
            swap,
            ..Memory::default()
        }),
        ..LinuxResources::default()
    }
}

fn cpu(cpu: Cpu) -> LinuxResources {
    LinuxResources {
        cpu: Some(cpu),
        ..LinuxResources::default()
    }
}

#[test]
fn shares_become_weights_along_the_curve_of_the_runtimes() {
    for (shares, expected) in [
        (0, 1),
        (2, 1),
        (3, 2),
        (102, 17),
        (256, 35),
        (512, 59),
        (1024, 100),
        (2048, 174),
        (262_144, 10_000),
        (u64::MAX, 10_000),
    ] {
        assert_eq!(weight(shares), expected, "{shares} shares");
    }
}

#[test]
fn limits_go_to_the_files_of_version_2() {
    let root = temp();
    let files = [
        ("a/cpu.weight", "100"),
        ("a/cpu.max", "50000 100000"),
        ("a/cpuset.cpus", "0-1"),
        ("a/cpuset.mems", "0"),
        ("a/memory.max", "1048576"),
        ("a/memory.swap.max", "1024"),
        ("a/memory.low", "4096"),
        ("a/memory.high", "999424"),
        ("a/pids.max", "7"),
        ("a/hugetlb.2MB.max", "4194304"),
        ("a/hugetlb.2MB.rsvd.max", "4194304"),
    ];
    put(
        root.path(),
        &files.map(|(file, _)| (file, "what was there before")),
    );
    let limits = LinuxResources {
        cpu: Some(Cpu {
            shares: Some(1024),
            quota: Some(50_000),
            period: Some(100_000),
            cpus: "0-1".into(),
            mems: "0".into(),
            idle: Some(0),
        }),
        memory: Some(Memory {
            limit: Some(1 << 20),
            swap: Some((1 << 20) + 1024),
            reservation: Some(4096),
            ..Memory::default()
        }),
        pids: Some(Pids { limit: 7 }),
        hugepage_limits: vec![HugepageLimit {
            page_size: "2MB".into(),
            limit: 4 << 20,
        }],
        unified: [("memory.high".to_owned(), "999424".to_owned())].into(),
        ..LinuxResources::default()
    };
    v2(root.path()).apply(&path("/a"), &limits).unwrap();
    for (file, value) in files {
        assert_eq!(get(root.path(), file), value, "{file}");
    }
    let nothing = LinuxResources {
        pids: Some(Pids { limit: 0 }),
        ..memory(Some(0), Some(0))
    };
    v2(root.path()).apply(&path("/a"), &nothing).unwrap();
    assert_eq!(get(root.path(), "a/memory.max"), "1048576");
    assert_eq!(get(root.path(), "a/pids.max"), "7");
    let lifted = LinuxResources {
        pids: Some(Pids { limit: -1 }),
        ..memory(Some(-1), None)
    };
    v2(root.path()).apply(&path("/a"), &lifted).unwrap();
    for file in ["a/memory.max", "a/memory.swap.max", "a/pids.max"] {
        assert_eq!(get(root.path(), file), "max");
    }
}

#[test]
fn swap_of_version_2_is_what_is_left_of_both_together() {
    let root = temp();
    put(
        root.path(),
        &[("a/memory.max", "4096"), ("a/memory.swap.max", "max")],
    );
    let fs = v2(root.path());
    for (limit, swap, expected) in [
        (Some(4096), Some(4096), "0"),
        (Some(4096), Some(8192), "4096"),
        (None, Some(5120), "1024"),
        (Some(4096), Some(-1), "max"),
    ] {
        fs.apply(&path("/a"), &memory(limit, swap)).unwrap();
        assert_eq!(get(root.path(), "a/memory.swap.max"), expected);
    }
    for (limit, swap, part) in [
        (
            Some(8192),
            Some(4096),
            "cannot have less than memory alone, which has 8192",
        ),
        (Some(-1), Some(4096), "needs a limit of memory"),
    ] {
        let error = fs.apply(&path("/a"), &memory(limit, swap)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    // A machine without swap accounting holds to limits that ask for no swap by itself.
    fs::remove_file(root.path().join("a/memory.swap.max")).unwrap();
    fs.apply(&path("/a"), &memory(Some(4096), Some(4096)))
        .unwrap();
    let error = fs
        .apply(&path("/a"), &memory(Some(4096), Some(8192)))
        .unwrap_err();
    assert!(error.to_string().contains("memory.swap.max"), "{error}");
}

#[test]
fn a_period_alone_keeps_the_quota_and_idle_has_no_share() {
    let root = temp();
    put(
        root.path(),
        &[
            ("a/cpu.max", "2000 100000\n"),
            ("a/cpu.idle", "0"),
            ("a/cpu.weight", "100"),
        ],
    );
    let fs = v2(root.path());
    let period = Cpu {
        period: Some(50_000),
        idle: Some(1),
        shares: Some(2),
        ..Cpu::default()
    };
    fs.apply(&path("/a"), &cpu(period)).unwrap();
    assert_eq!(get(root.path(), "a/cpu.max"), "2000 50000");
    assert_eq!(get(root.path(), "a/cpu.idle"), "1");
    assert_eq!(get(root.path(), "a/cpu.weight"), "100");
    let quota = Cpu {
        quota: Some(-1),
        ..Cpu::default()
    };
    fs.apply(&path("/a"), &cpu(quota)).unwrap();
    assert_eq!(get(root.path(), "a/cpu.max"), "max");
}

#[test]
fn a_limit_below_the_use_is_refused_where_that_was_asked_for() {
    let root = temp();
    put(
        root.path(),
        &[("a/memory.current", "9000\n"), ("a/memory.max", "max")],
    );
    let mut limits = memory(Some(8192), None);
    limits.memory.as_mut().unwrap().check_before_update = Some(true);
    let error = v2(root.path()).apply(&path("/a"), &limits).unwrap_err();
    assert!(
        error.to_string().contains("9000 bytes are in use"),
        "{error}"
    );
    assert_eq!(get(root.path(), "a/memory.max"), "max");
    limits.memory.as_mut().unwrap().limit = Some(10_000);
    v2(root.path()).apply(&path("/a"), &limits).unwrap();
    assert_eq!(get(root.path(), "a/memory.max"), "10000");
}

#[test]
fn files_named_by_a_specification_stay_in_the_cgroup_and_out_of_the_runtimes_hands() {
    let root = temp();
    put(
        root.path(),
        &[("a/io.max", ""), ("x.y", ""), ("cpu/a/cpu.weight", "")],
    );
    let unified = |file: &str, value: &str| LinuxResources {
        unified: [(file.to_owned(), value.to_owned())].into(),
        ..LinuxResources::default()
    };
    let fs = v2(root.path());
    fs.apply(&path("/a"), &unified("io.max", "8:0 rbps=1\n8:16 wbps=2"))
        .unwrap();
    assert_eq!(
        get(root.path(), "a/io.max"),
        "8:16 wbps=2",
        "one line in each write"
    );
    for (file, part) in [
        ("../x.y", "not the name of a file"),
        ("cgroup.kill", "the runtime's"),
        ("cgroup.procs", "the runtime's"),
        (
            "memory.nothing",
            "the cgroup controller `memory` is missing",
        ),
    ] {
        let error = fs.apply(&path("/a"), &unified(file, "1")).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let old = v1(root.path(), &[("cpu", "cpu")]);
    let error = old
        .apply(&path("/a"), &unified("cpu.weight", "1"))
        .unwrap_err();
    assert!(
        error.to_string().contains("this machine runs version 1"),
        "{error}"
    );
}

#[test]
fn memory_quotas_and_swap_go_up_and_down_in_an_order_that_the_kernel_takes() {
    let Some((cgroups, top)) = real("memsw") else {
        return;
    };
    const MIB: i64 = 1 << 20;
    for (limit, swap) in [
        (64 * MIB, 64 * MIB),
        (32 * MIB, 32 * MIB),
        (32 * MIB, 96 * MIB),
        (128 * MIB, 128 * MIB),
        (16 * MIB, -1),
        (256 * MIB, 512 * MIB),
        (-1, 0),
        (64 * MIB, 64 * MIB),
    ] {
        let limits = memory(Some(limit), Some(swap));
        cgroups
            .apply(&top, &limits)
            .unwrap_or_else(|error| panic!("{limit} {swap}: {error}"));
        let stats = cgroups
            .stats(&top, StatsScope::Usage)
            .unwrap()
            .memory
            .unwrap();
        assert_eq!(stats.limit, u64::try_from(limit).ok());
    }
    let both = |quota, period| {
        cpu(Cpu {
            quota: Some(quota),
            period: Some(period),
            ..Cpu::default()
        })
    };
    let inner = top.join("inner").unwrap();
    cgroups.ensure(&inner).unwrap();
    cgroups.apply(&top, &both(50_000, 100_000)).unwrap();
    for (quota, period) in [
        (50_000, 100_000),
        (5_000, 10_000),
        (100_000, 200_000),
        (-1, 50_000),
    ] {
        cgroups.apply(&inner, &both(quota, period)).unwrap();
    }
    cgroups.remove(&top).unwrap();
}
