//! Tests of `assemble`.

use jiff::Timestamp;
use rubelet_host::cgroup::{CgroupStats, CpuStats, MemoryStats};

use super::*;
use crate::{
    from_cri::{ContainerUsage, LayerUsage, PodUsage},
    sample::{CpuSample, CpuSpec, MemorySample},
    target::ContainerTarget,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn target(containers: &[&str]) -> PodTarget {
    PodTarget {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u1".into(),
        started_at: at(0),
        cgroups: Vec::new(),
        containers: containers
            .iter()
            .map(|id| ContainerTarget {
                name: format!("{id}-name").into(),
                id: (*id).into(),
                started_at: at(1),
                logs: "/logs".into(),
                image: "app".into(),
                cpu_spec: CpuSpec::default(),
            })
            .collect(),
        has_network: true,
        volumes: Vec::new(),
        etc_hosts: None,
    }
}

fn cgroup(seconds: i64, usage_ns: u64) -> Arc<CgroupSample> {
    Arc::new(CgroupSample {
        path: "/kubepods/podu1".into(),
        at: at(seconds),
        stats: CgroupStats {
            cpu: Some(CpuStats {
                usage_ns,
                ..CpuStats::default()
            }),
            memory: Some(MemoryStats::default()),
            ..CgroupStats::default()
        },
    })
}

fn runtime(usage_ns: u64) -> UsageSample {
    UsageSample {
        cpu: Some(CpuSample {
            at: at(0),
            usage_ns,
            ..CpuSample::default()
        }),
        memory: Some(MemorySample::default()),
        ..UsageSample::default()
    }
}

fn usage_of(readings: &Readings, source: UsageSource) -> Vec<Option<u64>> {
    let found = pods(
        &[target(&["c1", "c2"])],
        readings,
        source,
        &mut CpuRates::default(),
    );
    let cpu = |cpu: Option<CpuSample>| cpu.map(|cpu| cpu.usage_ns);
    let mut numbers = vec![cpu(found[0].usage.cpu)];
    numbers.extend(found[0].containers.iter().map(|one| cpu(one.usage.cpu)));
    numbers
}

#[test]
fn the_other_source_fills_what_the_preferred_one_lacks() {
    let mut readings = Readings::default();
    readings.cgroups.pods.insert("u1".into(), cgroup(0, 1));
    readings
        .cgroups
        .containers
        .insert("c1".into(), cgroup(0, 2));
    let pod = PodUsage {
        usage: runtime(10),
        ..PodUsage::default()
    };
    readings.runtime.pods.insert("u1".into(), pod);
    for (id, usage) in [("c1", 20), ("c2", 30)] {
        let found = ContainerUsage {
            usage: runtime(usage),
            layer: None,
        };
        readings.runtime.containers.insert(id.into(), found);
    }
    let both = usage_of(&readings, UsageSource::Cgroups);
    assert_eq!(both, [Some(1), Some(2), Some(30)]);
    let both = usage_of(&readings, UsageSource::Runtime);
    assert_eq!(both, [Some(10), Some(20), Some(30)]);
    // A runtime that does not answer costs the numbers that only it has.
    readings.runtime = RuntimeUsage::default();
    let kernel = usage_of(&readings, UsageSource::Runtime);
    assert_eq!(kernel, [Some(1), Some(2)]);
}

#[test]
fn the_runtime_is_needed_where_a_cgroup_has_not_all_numbers() {
    let targets = [target(&["c1"])];
    let mut cgroups = CgroupReadings::default();
    assert!(cgroups_suffice(&[], &cgroups));
    assert!(!cgroups_suffice(&targets, &cgroups));
    cgroups.pods.insert("u1".into(), cgroup(0, 1));
    assert!(!cgroups_suffice(&targets, &cgroups));
    cgroups.containers.insert("c1".into(), cgroup(0, 1));
    assert!(cgroups_suffice(&targets, &cgroups));
    let container = cgroups.containers.get_mut("c1").unwrap();
    Arc::make_mut(container).stats.memory = None;
    assert!(!cgroups_suffice(&targets, &cgroups));
}

#[test]
fn pods_of_which_nothing_is_known_are_omitted() {
    let none = Readings::default();
    let source = UsageSource::Cgroups;
    let found = pods(&[target(&["c1"])], &none, source, &mut CpuRates::default());
    assert_eq!(found, []);
}

#[test]
fn usage_per_second_is_that_since_the_reading_before() {
    let mut rates = CpuRates::default();
    let mut cores = Vec::new();
    for (seconds, usage_ns) in [(0, 0), (10, 5_000_000_000)] {
        let mut readings = Readings::default();
        let reading = cgroup(seconds, usage_ns);
        readings.cgroups.containers.insert("c1".into(), reading);
        let source = UsageSource::Cgroups;
        let found = pods(&[target(&["c1"])], &readings, source, &mut rates);
        rates.end_round();
        cores.push(found[0].containers[0].usage.cpu.unwrap().nano_cores);
    }
    assert_eq!(cores, [None, Some(500_000_000)]);
}

#[test]
fn a_part_of_a_disk_has_its_own_usage_and_the_space_of_the_whole() {
    let mut readings = Readings::default();
    readings
        .cgroups
        .containers
        .insert("c1".into(), cgroup(0, 1));
    let layer = LayerUsage {
        bytes: Some(7),
        inodes: Some(2),
    };
    let found = ContainerUsage {
        usage: UsageSample::default(),
        layer: Some(layer),
    };
    readings.runtime.containers.insert("c1".into(), found);
    let measure = |readings: &Readings| {
        let mut rates = CpuRates::default();
        let source = UsageSource::Cgroups;
        let found = pods(&[target(&["c1"])], readings, source, &mut rates);
        found[0].containers[0].clone()
    };
    // Without the file system, the number of a part says little.
    assert_eq!(measure(&readings).rootfs, None);
    let disk = |available| {
        Some(FsSample {
            at: at(0),
            available: Some(available),
            used: Some(1000),
            ..FsSample::default()
        })
    };
    readings.disks.layers = disk(50);
    readings.disks.logs = disk(60);
    readings.disks.log_files.insert("c1".into(), (5, 1));
    let found = measure(&readings);
    let rootfs = found.rootfs.unwrap();
    assert_eq!((rootfs.used, rootfs.available), (Some(7), Some(50)));
    let logs = found.logs.unwrap();
    assert_eq!((logs.used, logs.available), (Some(5), Some(60)));
}
