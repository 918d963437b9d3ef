//! `/stats/summary`. Source of the names: `k8s.io/kubelet/pkg/apis/stats/v1alpha1` of Kubernetes 1.36.

mod wire;

use jiff::Timestamp;
use rubelet_host::cgroup::{Pressure, PressureLine};

use crate::sample::{
    ContainerSample, CpuSample, FsSample, InterfaceSample, IoSample, MemorySample, NetworkSample,
    NodeSample, PodSample, StatsSample, SwapSample, SystemSample, UsageSample, VolumeSample,
};

/// Renders the summary of the node of that name.
#[must_use]
pub fn summary(sample: &StatsSample, node_name: &str) -> String {
    let summary = wire::Summary {
        node: node(&sample.node, node_name),
        pods: sample.pods.iter().map(pod).collect(),
    };
    // Numbers and texts: it is always JSON.
    serde_json::to_string(&summary).unwrap_or_default()
}

fn node<'a>(sample: &'a NodeSample, name: &'a str) -> wire::Node<'a> {
    let disks = (sample.image_fs.as_ref(), sample.container_fs.as_ref());
    wire::Node {
        node_name: name,
        start_time: sample.booted_at.map(time),
        usage: usage(&sample.usage),
        network: sample.network.as_ref().map(network),
        fs: sample.fs.as_ref().map(fs),
        runtime: (disks != (None, None)).then(|| wire::Runtime {
            image_fs: disks.0.map(fs),
            container_fs: disks.1.map(fs),
        }),
        rlimit: sample.processes.map(|processes| wire::Rlimit {
            time: time(processes.at),
            maxpid: processes.max,
            curproc: processes.running,
        }),
        system_containers: sample.system.iter().map(system_container).collect(),
    }
}

/// A cgroup of the node that is not a container.
fn system_container(sample: &SystemSample) -> wire::Container<'_> {
    wire::Container {
        name: sample.name,
        start_time: sample.started_at.map(time),
        usage: usage(&sample.usage),
        rootfs: None,
        logs: None,
    }
}

fn pod(sample: &PodSample) -> wire::Pod<'_> {
    wire::Pod {
        pod_ref: wire::PodReference {
            name: &sample.name,
            namespace: &sample.namespace,
            uid: &sample.uid,
        },
        start_time: time(sample.started_at),
        containers: sample.containers.iter().map(container).collect(),
        usage: usage(&sample.usage),
        network: sample.network.as_ref().map(network),
        volume: sample.volumes.iter().map(volume).collect(),
        ephemeral_storage: sample.ephemeral_storage.as_ref().map(fs),
        process_stats: sample
            .processes
            .map(|process_count| wire::Processes { process_count }),
    }
}

/// Every number of a volume is there: 0 if it is not known, as in the kubelet.
fn volume(sample: &VolumeSample) -> wire::Volume<'_> {
    let known = |number: Option<u64>| number.or(Some(0));
    let found = sample.fs;
    wire::Volume {
        fs: fs(&FsSample {
            at: found.at,
            available: known(found.available),
            capacity: known(found.capacity),
            used: known(found.used),
            inodes_free: known(found.inodes_free),
            inodes: known(found.inodes),
            inodes_used: known(found.inodes_used),
        }),
        name: &sample.name,
    }
}

fn container(sample: &ContainerSample) -> wire::Container<'_> {
    wire::Container {
        name: &sample.name,
        start_time: Some(time(sample.started_at)),
        usage: usage(&sample.usage),
        rootfs: sample.rootfs.as_ref().map(fs),
        logs: sample.logs.as_ref().map(fs),
    }
}

fn usage(sample: &UsageSample) -> wire::Usage {
    wire::Usage {
        cpu: sample.cpu.as_ref().map(cpu),
        memory: sample.memory.as_ref().map(memory),
        swap: sample.swap.as_ref().map(swap),
        io: sample.io.as_ref().map(io),
    }
}

fn cpu(sample: &CpuSample) -> wire::CpuStats {
    wire::CpuStats {
        time: time(sample.at),
        usage_nano_cores: sample.nano_cores,
        usage_core_nano_seconds: sample.usage_ns,
        psi: sample.pressure.map(psi),
    }
}

fn memory(sample: &MemorySample) -> wire::MemoryStats {
    wire::MemoryStats {
        time: time(sample.at),
        available_bytes: sample.available,
        usage_bytes: sample.usage,
        working_set_bytes: sample.working_set,
        rss_bytes: sample.rss,
        page_faults: sample.page_faults,
        major_page_faults: sample.major_page_faults,
        psi: sample.pressure.map(psi),
    }
}

fn swap(sample: &SwapSample) -> wire::Swap {
    wire::Swap {
        time: time(sample.at),
        swap_available_bytes: sample.available,
        swap_usage_bytes: sample.usage,
    }
}

fn io(sample: &IoSample) -> wire::Io {
    wire::Io {
        time: time(sample.at),
        psi: psi(sample.pressure),
    }
}

fn network(sample: &NetworkSample) -> wire::Network<'_> {
    let default = sample.interfaces.first().filter(|_| sample.has_default);
    wire::Network {
        time: time(sample.at),
        default: default.map(interface).unwrap_or_default(),
        interfaces: sample.interfaces.iter().map(interface).collect(),
    }
}

fn interface(sample: &InterfaceSample) -> wire::Interface<'_> {
    wire::Interface {
        name: &sample.name,
        rx_bytes: sample.rx_bytes,
        rx_errors: sample.rx_errors,
        tx_bytes: sample.tx_bytes,
        tx_errors: sample.tx_errors,
    }
}

fn fs(sample: &FsSample) -> wire::Fs {
    wire::Fs {
        time: time(sample.at),
        available_bytes: sample.available,
        capacity_bytes: sample.capacity,
        used_bytes: sample.used,
        inodes_free: sample.inodes_free,
        inodes: sample.inodes,
        inodes_used: sample.inodes_used,
    }
}

fn psi(pressure: Pressure) -> wire::Psi {
    let line = |line: PressureLine| wire::PsiData {
        total: line.total_ns,
        avg10: line.avg10,
        avg60: line.avg60,
        avg300: line.avg300,
    };
    wire::Psi {
        full: line(pressure.full),
        some: line(pressure.some),
    }
}

/// A time in the form of the Kubernetes API: whole seconds.
fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
