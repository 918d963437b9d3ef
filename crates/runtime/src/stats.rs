//! Resource usage of containers and pods.

mod convert;
pub(crate) mod metrics;

use std::{path::PathBuf, sync::Arc};

use rubelet_cgroup_plan::CgroupPath;
use rubelet_cri::v1::{self, FilesystemIdentifier, FilesystemUsage};
use rubelet_host::{
    cgroup::{CgroupStats, StatsScope},
    netlink::Link,
};
use rubelet_runtime_plan::{
    cri_status::{container_attributes, sandbox_attributes, stats_container, stats_sandbox},
    record::ContainerRecord,
    state::{ContainerCall, ContainerPhase, SandboxCall, SandboxPhase},
};

use crate::{
    clock,
    container::Container,
    engine::Engine,
    error::{Result, RuntimeError},
    sandbox::Sandbox,
};
pub(crate) use convert::value;
use convert::{UsageStats, convert};
use metrics::{ContainerInfo, LayerDisk, ProcessCounts};

/// Statistics of one container.
pub(crate) async fn container(engine: &Arc<Engine>, id: &str) -> Result<v1::ContainerStats> {
    let found = engine.container(ContainerCall::Stats, id)?;
    let container = found.ok_or_else(|| RuntimeError::container_not_found(id))?;
    of_container(engine, &container).await
}

/// Statistics of the running containers that match a filter. Containers that exit meanwhile are
/// omitted.
pub(crate) async fn containers(
    engine: &Arc<Engine>,
    filter: Option<&v1::ContainerStatsFilter>,
) -> Vec<v1::ContainerStats> {
    let mut all = Vec::new();
    for container in engine.table.containers() {
        let record = container.record();
        if record.phase == ContainerPhase::Running && stats_container(filter, &record) {
            all.extend(of_container(engine, &container).await.ok());
        }
    }
    all
}

/// Statistics of one pod.
pub(crate) async fn sandbox(engine: &Arc<Engine>, id: &str) -> Result<v1::PodSandboxStats> {
    let found = engine.sandbox(SandboxCall::Stats, id)?;
    let sandbox = found.ok_or_else(|| RuntimeError::sandbox_not_found(id))?;
    of_sandbox(engine, &sandbox).await
}

/// Statistics of the ready pods that match a filter. Pods that stop meanwhile are omitted.
pub(crate) async fn sandboxes(
    engine: &Arc<Engine>,
    filter: Option<&v1::PodSandboxStatsFilter>,
) -> Vec<v1::PodSandboxStats> {
    let mut all = Vec::new();
    for sandbox in engine.table.sandboxes() {
        let record = sandbox.record();
        if record.phase == SandboxPhase::Ready && stats_sandbox(filter, &record) {
            all.extend(of_sandbox(engine, &sandbox).await.ok());
        }
    }
    all
}

async fn of_container(
    engine: &Arc<Engine>,
    container: &Arc<Container>,
) -> Result<v1::ContainerStats> {
    let record = container.record();
    let measured = match record.phase {
        ContainerPhase::Running => {
            let (stats, at) = measure(engine, container.cgroup()?).await?;
            let cores = stats
                .cpu
                .and_then(|cpu| container.rate.lock().next(at, cpu.usage_ns));
            convert(&stats, at, cores)
        }
        // It has no processes.
        _ => UsageStats::default(),
    };
    let usage = engine.images.rootfs_usage(&container.id).await.ok();
    Ok(v1::ContainerStats {
        attributes: Some(container_attributes(&record)),
        cpu: measured.cpu,
        memory: measured.memory,
        writable_layer: usage.map(|usage| FilesystemUsage {
            timestamp: clock::now_ns(),
            fs_id: Some(FilesystemIdentifier {
                mountpoint: engine
                    .images
                    .fs_info()
                    .mountpoint
                    .to_string_lossy()
                    .into_owned(),
            }),
            used_bytes: value(usage.bytes),
            inodes_used: value(usage.inodes),
        }),
        swap: measured.swap,
        io: measured.io,
    })
}

async fn of_sandbox(engine: &Arc<Engine>, sandbox: &Arc<Sandbox>) -> Result<v1::PodSandboxStats> {
    let record = sandbox.record();
    let mut linux = v1::LinuxPodSandboxStats::default();
    if record.phase == SandboxPhase::Ready {
        // The kubelet owns the pod's cgroup: if it is missing, only the pod's own numbers are.
        if let Ok(cgroup) = CgroupPath::parse(&record.cgroup_parent)
            && let Ok((stats, at)) = measure(engine, cgroup).await
        {
            let cores = stats
                .cpu
                .and_then(|cpu| sandbox.rate.lock().next(at, cpu.usage_ns));
            let measured = convert(&stats, at, cores);
            linux.cpu = measured.cpu;
            linux.memory = measured.memory;
            linux.io = measured.io;
            linux.process = measured.processes.map(|count| v1::ProcessUsage {
                timestamp: at,
                process_count: value(count),
            });
        }
        if sandbox.has_network() {
            linux.network = network(engine, engine.layout.sandbox(&sandbox.id).netns()).await;
        }
        for container in sandbox.members() {
            if container.phase() == ContainerPhase::Running {
                linux
                    .containers
                    .extend(of_container(engine, &container).await.ok());
            }
        }
    }
    Ok(v1::PodSandboxStats {
        attributes: Some(sandbox_attributes(&record)),
        linux: Some(linux),
        windows: None,
    })
}

/// cAdvisor metrics of all ready pods and their running containers.
pub(crate) async fn raw(engine: &Arc<Engine>) -> Vec<v1::PodSandboxMetrics> {
    let mut all = Vec::new();
    for sandbox in engine.table.sandboxes() {
        let record = sandbox.record();
        if record.phase != SandboxPhase::Ready {
            continue;
        }
        let mut pod = v1::PodSandboxMetrics {
            pod_sandbox_id: sandbox.id.clone(),
            ..Default::default()
        };
        if let Ok(cgroup) = CgroupPath::parse(&record.cgroup_parent)
            && let Ok((stats, _)) = measure(engine, cgroup).await
        {
            pod.metrics = metrics::of_cgroup(&stats, &sandbox.id, &record.name);
        }
        if sandbox.has_network() {
            let netns = engine.layout.sandbox(&sandbox.id).netns();
            let links = links(engine, netns).await.unwrap_or_default();
            let metrics = links
                .iter()
                .map(|link| metrics::of_link(link, &sandbox.id, &record.name));
            pod.metrics.extend(metrics.flatten());
        }
        for container in sandbox.members() {
            let record = container.record();
            if record.phase == ContainerPhase::Running
                && let Ok(cgroup) = container.cgroup()
                && let Ok((stats, _)) = measure(engine, cgroup.clone()).await
            {
                let mut metrics = metrics::of_cgroup(&stats, &container.id, &record.name);
                let known = known(engine, &record, cgroup).await;
                metrics.extend(metrics::of_container(&known, &container.id, &record.name));
                pod.container_metrics.push(v1::ContainerMetrics {
                    metrics,
                    container_id: container.id.clone(),
                });
            }
        }
        all.push(pod);
    }
    all
}

/// Data of a running container that its cgroup does not have.
async fn known(engine: &Engine, record: &ContainerRecord, cgroup: CgroupPath) -> ContainerInfo {
    let used = engine.images.rootfs_usage(&record.id).await;
    let mountpoint = engine.images.fs_info().mountpoint;
    let cgroups = engine.cgroups.clone();
    let gathered = engine.blocking(move || {
        let pids = cgroups.processes(&cgroup).unwrap_or_default();
        Ok((ProcessCounts::count(pids), LayerDisk::below(&mountpoint)))
    });
    let (processes, mut disk) = gathered.await.unwrap_or_default();
    disk.used = used.map(|usage| usage.bytes).unwrap_or_default();
    let time = |time: i64| u64::try_from(time).unwrap_or_default();
    ContainerInfo {
        now: time(clock::now_ns()),
        started_at: time(record.started_at),
        resources: record.resources.clone(),
        processes,
        disk,
    }
}

async fn measure(engine: &Engine, cgroup: CgroupPath) -> Result<(CgroupStats, i64)> {
    let cgroups = engine.cgroups.clone();
    engine
        .blocking(move || {
            let stats = cgroups.stats(&cgroup, StatsScope::All).map_err(|error| {
                RuntimeError::because("cannot read the cgroup's statistics", &error)
            })?;
            Ok((stats, clock::now_ns()))
        })
        .await
}

/// The default interface is the first one that is not loopback.
async fn network(engine: &Engine, netns: PathBuf) -> Option<v1::NetworkUsage> {
    let links = links(engine, netns).await.ok()?;
    let mut usage = links.into_iter().map(|link| v1::NetworkInterfaceUsage {
        name: link.name,
        rx_bytes: value(link.counters.rx_bytes),
        rx_errors: value(link.counters.rx_errors),
        tx_bytes: value(link.counters.tx_bytes),
        tx_errors: value(link.counters.tx_errors),
    });
    Some(v1::NetworkUsage {
        timestamp: clock::now_ns(),
        default_interface: usage.next(),
        interfaces: usage.collect(),
    })
}

/// The interfaces of a pod, without loopback.
async fn links(engine: &Engine, netns: PathBuf) -> Result<Vec<Link>> {
    engine
        .blocking(move || {
            let mut links = rubelet_host::netns::interfaces(&netns).map_err(|error| {
                RuntimeError::because("cannot read the network interfaces of the pod", &error)
            })?;
            links.retain(|link| link.name != "lo");
            Ok(links)
        })
        .await
}
