//! From the runtime's statistics to samples. Their identifiers choose nothing but which of the node's
//! own pods and containers the numbers belong to.

use std::collections::HashMap;

use jiff::Timestamp;
use rubelet_cri::v1;
use rubelet_host::cgroup::{Pressure, PressureLine};

use crate::sample::{
    CpuSample, InterfaceSample, IoSample, MemorySample, NetworkSample, SwapSample, UsageSample,
};

/// Interfaces of a pod that are shown: a pod may create any number of them.
const MOST_INTERFACES: usize = 64;

/// What a runtime reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuntimeUsage {
    /// By the UID of the pod.
    pub(crate) pods: HashMap<String, PodUsage>,
    /// By the identifier of the container.
    pub(crate) containers: HashMap<String, ContainerUsage>,
}

/// What a runtime reports of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PodUsage {
    pub(crate) usage: UsageSample,
    pub(crate) network: Option<NetworkSample>,
    pub(crate) processes: Option<u64>,
}

/// What a runtime reports of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ContainerUsage {
    pub(crate) usage: UsageSample,
    /// Its writable layer.
    pub(crate) layer: Option<LayerUsage>,
}

/// The writable layer of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LayerUsage {
    pub(crate) bytes: Option<u64>,
    pub(crate) inodes: Option<u64>,
}

impl RuntimeUsage {
    /// Reads the response of `ListPodSandboxStats`.
    pub(crate) fn of_sandboxes(stats: Vec<v1::PodSandboxStats>) -> Self {
        let mut all = Self::default();
        for sandbox in stats {
            let Some(linux) = sandbox.linux else {
                continue;
            };
            let metadata = sandbox.attributes.and_then(|of| of.metadata);
            if let Some(metadata) = metadata {
                // Releases of containerd before 2 give networks no time; they read all of a pod at once.
                let read_at = linux.cpu.as_ref().and_then(|cpu| time(cpu.timestamp));
                let pod = PodUsage {
                    usage: usage(linux.cpu, linux.memory, None, linux.io),
                    network: linux.network.and_then(|usage| network(usage, read_at)),
                    processes: linux.process.and_then(|of| number(of.process_count)),
                };
                // An earlier sandbox of the pod may be left, without numbers.
                let known = all.pods.entry(metadata.uid).or_default();
                if pod != PodUsage::default() {
                    *known = pod;
                }
            }
            all.add_containers(linux.containers);
        }
        all
    }

    /// Reads the response of `ListContainerStats`.
    pub(crate) fn of_containers(stats: Vec<v1::ContainerStats>) -> Self {
        let mut all = Self::default();
        all.add_containers(stats);
        all
    }

    fn add_containers(&mut self, stats: Vec<v1::ContainerStats>) {
        for container in stats {
            if let Some(attributes) = container.attributes {
                let (cpu, memory) = (container.cpu, container.memory);
                let found = ContainerUsage {
                    usage: usage(cpu, memory, container.swap, container.io),
                    layer: container.writable_layer.map(|layer| LayerUsage {
                        bytes: number(layer.used_bytes),
                        inodes: number(layer.inodes_used),
                    }),
                };
                self.containers.insert(attributes.id, found);
            }
        }
    }
}

fn usage(
    cpu: Option<v1::CpuUsage>,
    memory: Option<v1::MemoryUsage>,
    swap: Option<v1::SwapUsage>,
    io: Option<v1::IoUsage>,
) -> UsageSample {
    UsageSample {
        cpu: cpu.and_then(|cpu| {
            Some(CpuSample {
                at: time(cpu.timestamp)?,
                usage_ns: number(cpu.usage_core_nano_seconds)?,
                // Computed here for all runtimes: that of containerd may be of long ago.
                nano_cores: None,
                pressure: cpu.psi.map(pressure),
            })
        }),
        memory: memory.and_then(|memory| {
            Some(MemorySample {
                at: time(memory.timestamp)?,
                usage: number(memory.usage_bytes),
                working_set: number(memory.working_set_bytes),
                rss: number(memory.rss_bytes),
                // Runtimes report 0 without a limit.
                available: number(memory.available_bytes).filter(|bytes| *bytes > 0),
                page_faults: number(memory.page_faults),
                major_page_faults: number(memory.major_page_faults),
                pressure: memory.psi.map(pressure),
            })
        }),
        swap: swap.and_then(|swap| {
            Some(SwapSample {
                at: time(swap.timestamp)?,
                usage: number(swap.swap_usage_bytes),
                available: number(swap.swap_available_bytes),
            })
        }),
        io: io.and_then(|io| {
            Some(IoSample {
                at: time(io.timestamp)?,
                pressure: pressure(io.psi?),
            })
        }),
    }
}

/// The networks of a pod; `read_at` is the time of its other numbers.
fn network(usage: v1::NetworkUsage, read_at: Option<Timestamp>) -> Option<NetworkSample> {
    let has_default = usage.default_interface.is_some();
    let all = usage.default_interface.into_iter().chain(usage.interfaces);
    let interface = |interface: v1::NetworkInterfaceUsage| InterfaceSample {
        name: interface.name.into(),
        rx_bytes: number(interface.rx_bytes),
        rx_errors: number(interface.rx_errors),
        tx_bytes: number(interface.tx_bytes),
        tx_errors: number(interface.tx_errors),
        ..InterfaceSample::default()
    };
    Some(NetworkSample {
        at: time(usage.timestamp).or(read_at)?,
        interfaces: all.take(MOST_INTERFACES).map(interface).collect(),
        has_default,
    })
}

fn number(value: Option<v1::UInt64Value>) -> Option<u64> {
    value.map(|value| value.value)
}

/// A time in nanoseconds since 1970; `None` for 0, which means that nothing was read.
fn time(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.into())
        .ok()
        .filter(|at| *at > Timestamp::UNIX_EPOCH)
}

fn pressure(psi: v1::PsiStats) -> Pressure {
    let line = |data: Option<v1::PsiData>| {
        let data = data.unwrap_or_default();
        PressureLine {
            avg10: data.avg10,
            avg60: data.avg60,
            avg300: data.avg300,
            total_ns: data.total,
        }
    };
    Pressure {
        some: line(psi.some),
        full: line(psi.full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(
        clippy::unnecessary_wraps,
        reason = "every field that takes one is optional"
    )]
    fn value(value: u64) -> Option<v1::UInt64Value> {
        Some(v1::UInt64Value { value })
    }

    fn container(id: &str, timestamp: i64) -> v1::ContainerStats {
        v1::ContainerStats {
            attributes: Some(v1::ContainerAttributes {
                id: id.to_owned(),
                ..Default::default()
            }),
            cpu: Some(v1::CpuUsage {
                timestamp,
                usage_core_nano_seconds: value(7),
                usage_nano_cores: value(1),
                psi: None,
            }),
            memory: Some(v1::MemoryUsage {
                timestamp,
                working_set_bytes: value(4),
                available_bytes: value(0),
                ..Default::default()
            }),
            writable_layer: Some(v1::FilesystemUsage {
                used_bytes: value(12),
                inodes_used: value(3),
                ..Default::default()
            }),
            swap: Some(v1::SwapUsage {
                timestamp,
                swap_available_bytes: value(3),
                swap_usage_bytes: value(2),
            }),
            ..Default::default()
        }
    }

    #[test]
    fn numbers_belong_to_the_pod_of_that_uid_and_the_container_of_that_identifier() {
        let sandbox = v1::PodSandboxStats {
            attributes: Some(v1::PodSandboxAttributes {
                metadata: Some(v1::PodSandboxMetadata {
                    uid: "u1".to_owned(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            linux: Some(v1::LinuxPodSandboxStats {
                cpu: Some(v1::CpuUsage {
                    timestamp: 9,
                    usage_core_nano_seconds: value(8),
                    ..Default::default()
                }),
                containers: vec![container("c1", 9)],
                process: Some(v1::ProcessUsage {
                    timestamp: 9,
                    process_count: value(6),
                }),
                // As containerd 1.6 has it.
                network: Some(v1::NetworkUsage {
                    timestamp: 0,
                    default_interface: Some(v1::NetworkInterfaceUsage {
                        name: "eth0".to_owned(),
                        tx_bytes: value(9),
                        ..Default::default()
                    }),
                    interfaces: vec![v1::NetworkInterfaceUsage::default(); 1000],
                }),
                ..Default::default()
            }),
            windows: None,
        };
        let stopped = v1::PodSandboxStats {
            linux: Some(v1::LinuxPodSandboxStats::default()),
            ..sandbox.clone()
        };
        let all = vec![sandbox, stopped, v1::PodSandboxStats::default()];
        let found = RuntimeUsage::of_sandboxes(all);
        let pod = &found.pods["u1"];
        assert_eq!(pod.usage.cpu.unwrap().usage_ns, 8);
        assert_eq!((pod.usage.memory, pod.processes), (None, Some(6)));
        let network = pod.network.as_ref().unwrap();
        assert_eq!(network.at.as_nanosecond(), 9);
        assert!(network.has_default);
        assert_eq!(network.interfaces.len(), MOST_INTERFACES);
        assert_eq!(&*network.interfaces[0].name, "eth0");
        assert_eq!(network.interfaces[0].tx_bytes, Some(9));
        let layer = found.containers["c1"].layer.unwrap();
        assert_eq!((layer.bytes, layer.inodes), (Some(12), Some(3)));
        let one = found.containers["c1"].usage;
        assert_eq!(one.cpu.unwrap().at.as_nanosecond(), 9);
        assert_eq!(one.cpu.unwrap().nano_cores, None);
        assert_eq!(one.memory.unwrap().working_set, Some(4));
        assert_eq!(one.memory.unwrap().available, None);
        assert_eq!(one.swap.unwrap().available, Some(3));
    }

    #[test]
    fn a_reading_without_a_time_is_no_reading() {
        for timestamp in [0, -1, i64::MIN] {
            let found = RuntimeUsage::of_containers(vec![container("c1", timestamp)]);
            assert_eq!(found.containers["c1"].usage, UsageSample::default());
        }
    }
}
