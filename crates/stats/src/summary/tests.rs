//! Tests of `summary`.

use super::*;
use crate::sample::ProcessSample;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

fn usage() -> (Option<CpuSample>, Option<MemorySample>, Option<SwapSample>) {
    let line = PressureLine {
        avg10: 1.5,
        avg60: 0.0,
        avg300: 0.25,
        total_ns: 7000,
    };
    let pressure = Some(Pressure {
        some: line,
        full: PressureLine::default(),
    });
    let cpu = CpuSample {
        at: at(2),
        usage_ns: 90,
        nano_cores: Some(9),
        pressure,
    };
    let memory = MemorySample {
        at: at(3),
        usage: Some(10),
        working_set: Some(8),
        rss: Some(5),
        available: Some(2),
        page_faults: Some(4),
        major_page_faults: Some(1),
        pressure: None,
    };
    let swap = SwapSample {
        at: at(4),
        usage: Some(6),
        available: Some(7),
    };
    (Some(cpu), Some(memory), Some(swap))
}

fn disk() -> FsSample {
    FsSample {
        at: at(5),
        available: Some(40),
        capacity: Some(100),
        used: Some(55),
        inodes_free: Some(7),
        inodes: Some(9),
        inodes_used: Some(2),
    }
}

fn eth0() -> NetworkSample {
    let interface = |name: &str| InterfaceSample {
        name: name.into(),
        rx_bytes: Some(1),
        rx_errors: Some(2),
        tx_bytes: Some(3),
        ..InterfaceSample::default()
    };
    NetworkSample {
        at: at(6),
        interfaces: vec![interface("eth0"), interface("net1")],
        has_default: true,
    }
}

#[test]
fn the_fields_are_those_of_the_kubelet() {
    let (cpu, memory, swap) = usage();
    let io = Some(IoSample {
        at: at(7),
        pressure: Pressure::default(),
    });
    let usage = UsageSample {
        cpu,
        memory,
        swap,
        io,
    };
    let (fs, network) = (Some(disk()), Some(eth0()));
    let sample = StatsSample {
        node: NodeSample {
            booted_at: Some(at(-60)),
            usage,
            network: network.clone(),
            processes: Some(ProcessSample {
                at: at(8),
                running: 12,
                max: 4096,
            }),
            fs,
            image_fs: fs,
            container_fs: fs,
            system: vec![SystemSample {
                name: "pods",
                started_at: None,
                usage: UsageSample {
                    cpu: Some(CpuSample {
                        at: at(2),
                        usage_ns: 90,
                        ..CpuSample::default()
                    }),
                    ..UsageSample::default()
                },
            }],
            ..NodeSample::default()
        },
        pods: vec![PodSample {
            namespace: "default".into(),
            name: "web".into(),
            uid: "u1".into(),
            started_at: at(0),
            usage,
            network,
            processes: Some(3),
            containers: vec![ContainerSample {
                name: "app".into(),
                id: "c1".into(),
                started_at: at(1),
                usage,
                rootfs: fs,
                logs: fs,
                ..ContainerSample::default()
            }],
            volumes: vec![VolumeSample {
                name: "data".into(),
                fs: FsSample {
                    inodes: None,
                    ..disk()
                },
                is_ephemeral: true,
            }],
            ephemeral_storage: fs,
            ..PodSample::default()
        }],
        ..StatsSample::default()
    };
    let text = summary(&sample, "n1");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let expected: serde_json::Value = serde_json::from_str(include_str!("golden.json")).unwrap();
    let pretty = serde_json::to_string_pretty(&found).unwrap();
    assert_eq!(found, expected, "{pretty}");
}

#[test]
fn numbers_that_were_not_read_are_missing() {
    let sample = StatsSample {
        pods: vec![PodSample::default()],
        ..StatsSample::default()
    };
    let text = summary(&sample, "n1");
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&found["node"]), ["nodeName", "startTime"]);
    assert_eq!(
        keys(&found["pods"][0]),
        ["containers", "podRef", "startTime"]
    );
}
