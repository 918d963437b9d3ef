//! `/stats/summary`. Source of the names: `k8s.io/kubelet/pkg/apis/stats/v1alpha1` of Kubernetes 1.36.

mod wire;

use jiff::Timestamp;
use rubelet_host::cgroup::{Pressure, PressureLine};

use crate::sample::{
    ContainerSample, CpuSample, MemorySample, NodeSample, PodSample, StatsSample, SwapSample,
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

fn node<'a>(sample: &NodeSample, name: &'a str) -> wire::Node<'a> {
    wire::Node {
        node_name: name,
        start_time: sample.booted_at.map(time),
        cpu: sample.cpu.as_ref().map(cpu),
        memory: sample.memory.as_ref().map(memory),
        swap: sample.swap.as_ref().map(swap),
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
        cpu: sample.cpu.as_ref().map(cpu),
        memory: sample.memory.as_ref().map(memory),
        swap: sample.swap.as_ref().map(swap),
    }
}

fn container(sample: &ContainerSample) -> wire::Container<'_> {
    wire::Container {
        name: &sample.name,
        start_time: time(sample.started_at),
        cpu: sample.cpu.as_ref().map(cpu),
        memory: sample.memory.as_ref().map(memory),
        swap: sample.swap.as_ref().map(swap),
    }
}

fn cpu(sample: &CpuSample) -> wire::Cpu {
    wire::Cpu {
        time: time(sample.at),
        usage_nano_cores: sample.nano_cores,
        usage_core_nano_seconds: sample.usage_ns,
        psi: sample.pressure.map(psi),
    }
}

fn memory(sample: &MemorySample) -> wire::Memory {
    wire::Memory {
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
