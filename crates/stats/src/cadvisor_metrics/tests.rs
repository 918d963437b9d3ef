//! Tests of `cadvisor_metrics`.

use std::sync::Arc;

use rubelet_host::cgroup::{CpuStats, IoStats, MemoryStats, PidsStats};

use super::*;
use crate::{
    from_cgroup,
    sample::{CpuSpec, FsSample, InterfaceSample},
};

fn at() -> Timestamp {
    Timestamp::from_millisecond(7000).unwrap()
}

fn cgroup(path: &str, periods: u64) -> Arc<CgroupSample> {
    Arc::new(CgroupSample {
        path: path.into(),
        at: at(),
        stats: CgroupStats {
            cpu: Some(CpuStats {
                usage_ns: 1_500_000_000,
                periods,
                throttled_periods: 2,
                throttled_ns: 250_000_000,
                ..CpuStats::default()
            }),
            memory: Some(MemoryStats {
                usage: 10,
                working_set: 8,
                cache: 6,
                limit: Some(64),
                page_faults: 3,
                ..MemoryStats::default()
            }),
            pids: Some(PidsStats {
                current: 4,
                limit: None,
            }),
            io: vec![
                IoStats {
                    major: 8,
                    minor: 0,
                    read_bytes: 11,
                    ..IoStats::default()
                },
                IoStats {
                    major: 9,
                    ..IoStats::default()
                },
            ],
            ..CgroupStats::default()
        },
    })
}

fn sample() -> StatsSample {
    let (pod, app) = (cgroup("/k/podu1", 0), cgroup("/k/podu1/c1", 5));
    let usage = from_cgroup::usage(&app.stats, app.at);
    let container = ContainerSample {
        name: "app".into(),
        id: "c1".into(),
        started_at: at(),
        usage: UsageSample {
            cpu: usage.cpu,
            memory: usage.memory,
            ..UsageSample::default()
        },
        rootfs: Some(FsSample {
            at: at(),
            capacity: Some(100),
            used: Some(9),
            ..FsSample::default()
        }),
        // Images are named by whoever makes the manifest.
        image: "app\"} 1\nforged 2".into(),
        cpu_spec: CpuSpec {
            shares: 512,
            quota_us: Some(50_000),
            period_us: 100_000,
        },
        cgroup: Some(app),
        ..ContainerSample::default()
    };
    let network = NetworkSample {
        at: at(),
        interfaces: vec![InterfaceSample {
            name: "eth0".into(),
            rx_bytes: Some(12),
            rx_packets: Some(13),
            rx_dropped: Some(14),
            tx_packets: Some(15),
            tx_dropped: Some(16),
            ..InterfaceSample::default()
        }],
        has_default: true,
    };
    StatsSample {
        node: NodeSample {
            usage: UsageSample {
                cpu: usage.cpu,
                ..UsageSample::default()
            },
            pods: Some(cgroup("/k", 0)),
            cores: Some(2),
            memory_capacity: Some(4096),
            layers_device: Some("/dev/sda1".into()),
            ..NodeSample::default()
        },
        pods: vec![PodSample {
            namespace: "default".into(),
            name: "web".into(),
            uid: "u1".into(),
            usage: UsageSample {
                cpu: usage.cpu,
                ..UsageSample::default()
            },
            network: Some(network),
            cgroup: Some(pod),
            containers: vec![container],
            ..PodSample::default()
        }],
        devices: [((8, 0), "/dev/sda".into())].into(),
        problems: Vec::new(),
    }
}

#[test]
fn each_number_has_the_name_and_the_labels_that_dashboards_read() {
    let text = cadvisor_metrics(&sample());
    let of = r#"container="app",id="/k/podu1/c1",image="app\"} 1\nforged 2",name="c1",namespace="default",pod="web""#;
    let pod = r#"container="",id="/k/podu1",image="",name="",namespace="default",pod="web""#;
    let root = r#"container="",id="/",image="",name="",namespace="",pod="""#;
    let all = r#"container="",id="/k",image="",name="",namespace="",pod="""#;
    for line in [
        format!(r#"container_cpu_usage_seconds_total{{{of},cpu="total"}} 1.5 7000"#),
        format!(r#"container_cpu_usage_seconds_total{{{pod},cpu="total"}} 1.5 7000"#),
        format!(r#"container_cpu_usage_seconds_total{{{root},cpu="total"}} 1.5 7000"#),
        format!(r#"container_cpu_usage_seconds_total{{{all},cpu="total"}} 1.5 7000"#),
        format!("container_cpu_cfs_periods_total{{{of}}} 5 7000"),
        format!("container_cpu_cfs_throttled_periods_total{{{of}}} 2 7000"),
        format!("container_cpu_cfs_throttled_seconds_total{{{of}}} 0.25 7000"),
        format!("container_memory_usage_bytes{{{of}}} 10 7000"),
        format!("container_memory_working_set_bytes{{{of}}} 8 7000"),
        format!("container_memory_cache{{{of}}} 6 7000"),
        format!(
            r#"container_memory_failures_total{{{of},failure_type="pgfault",scope="container"}} 3 7000"#
        ),
        format!(r#"container_fs_reads_bytes_total{{{of},device="/dev/sda"}} 11 7000"#),
        format!(r#"container_fs_reads_bytes_total{{{of},device="9:0"}} 0 7000"#),
        format!(
            r#"container_blkio_device_usage_total{{{of},device="/dev/sda",major="8",minor="0",operation="Read"}} 11 7000"#
        ),
        format!(r#"container_fs_usage_bytes{{{of},device="/dev/sda1"}} 9 7000"#),
        format!(r#"container_fs_limit_bytes{{{of},device="/dev/sda1"}} 100 7000"#),
        format!(r#"container_network_receive_bytes_total{{{pod},interface="eth0"}} 12 7000"#),
        format!(r#"container_network_receive_packets_total{{{pod},interface="eth0"}} 13 7000"#),
        format!(
            r#"container_network_receive_packets_dropped_total{{{pod},interface="eth0"}} 14 7000"#
        ),
        format!(r#"container_network_transmit_packets_total{{{pod},interface="eth0"}} 15 7000"#),
        format!(
            r#"container_network_transmit_packets_dropped_total{{{pod},interface="eth0"}} 16 7000"#
        ),
        format!("container_spec_cpu_period{{{of}}} 100000"),
        format!("container_spec_cpu_quota{{{of}}} 50000"),
        format!("container_spec_cpu_shares{{{of}}} 512"),
        format!("container_spec_memory_limit_bytes{{{of}}} 64 7000"),
        format!("container_start_time_seconds{{{of}}} 7"),
        format!("container_last_seen{{{of}}} 7"),
        format!("container_threads{{{of}}} 4 7000"),
        "machine_cpu_cores 2".to_owned(),
        "machine_memory_bytes 4096".to_owned(),
        "container_scrape_error 0".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.lines().all(|line| !line.starts_with("forged")));
    // Numbers of a quota are those of a cgroup that has one.
    let throttled = text
        .lines()
        .filter(|line| line.starts_with("container_cpu_cfs_periods_total"));
    assert_eq!(throttled.count(), 1);
}

#[test]
fn each_metric_is_described_once() {
    let text = cadvisor_metrics(&sample());
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), count > 30), (count, true));
}
