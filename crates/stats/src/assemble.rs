//! From what was read to the samples of pods.

use std::{collections::HashMap, sync::Arc};

use crate::{
    cgroup_request::CgroupReadings,
    disks::DiskReadings,
    from_cgroup,
    from_cri::{LayerUsage, RuntimeUsage},
    rate::CpuRates,
    sample::{
        CgroupSample, ContainerSample, FsSample, NetworkSample, PodSample, SystemSample,
        UsageSample,
    },
    system::{KUBELET, PODS, SystemCgroups},
    target::{ContainerTarget, PodTarget},
};

/// Whose numbers are used where both have them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UsageSource {
    /// The kernel's, as read here: the kubelet's default.
    #[default]
    Cgroups,
    /// The runtime's (feature gate `PodAndContainerStatsFromCRI`).
    Runtime,
}

/// What was read. Without a runtime's response its numbers are missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Readings {
    pub(crate) cgroups: CgroupReadings,
    pub(crate) runtime: RuntimeUsage,
    /// Writable layers, by the identifier of the container, where only these were asked for.
    pub(crate) layers: Arc<HashMap<String, LayerUsage>>,
    pub(crate) disks: DiskReadings,
}

impl Readings {
    fn pod(&self, uid: &str, source: UsageSource) -> UsageSample {
        let runtime = self.runtime.pods.get(uid).map(|pod| pod.usage);
        let cgroup = self.cgroups.pods.get(uid);
        let cgroup = cgroup.map(|read| from_cgroup::usage(&read.stats, read.at));
        pick(cgroup, runtime, source)
    }

    fn container(&self, id: &str, source: UsageSource) -> UsageSample {
        let runtime = self.runtime.containers.get(id).map(|of| of.usage);
        let cgroup = self.cgroups.containers.get(id);
        let cgroup = cgroup.map(|read| from_cgroup::usage(&read.stats, read.at));
        pick(cgroup, runtime, source)
    }

    /// Processes and threads of a pod.
    fn processes(&self, uid: &str) -> Option<u64> {
        let cgroup = self.cgroups.pods.get(uid);
        let cgroup = cgroup.and_then(|read| Some(read.stats.pids?.current));
        cgroup.or_else(|| self.runtime.pods.get(uid)?.processes)
    }

    /// The network, as read here or as the runtime reports it.
    fn network(&self, uid: &str) -> Option<NetworkSample> {
        let own = self.cgroups.networks.get(uid);
        own.or_else(|| self.runtime.pods.get(uid)?.network.as_ref())
            .cloned()
    }

    /// The writable layer, and what is left on its file system.
    fn rootfs(&self, container: &ContainerTarget) -> Option<FsSample> {
        let asked = self.runtime.containers.get(&*container.id);
        let layer = asked.and_then(|usage| usage.layer);
        let layer = layer.or_else(|| self.layers.get(&*container.id).copied())?;
        Some(self.disks.layers?.part(layer.bytes, layer.inodes))
    }

    /// The log files, and what is left on their file system.
    fn logs(&self, container: &ContainerTarget) -> Option<FsSample> {
        let (bytes, inodes) = self.disks.log_files.get(&container.id)?;
        Some(self.disks.logs?.part(Some(*bytes), Some(*inodes)))
    }
}

fn pick(
    cgroup: Option<UsageSample>,
    runtime: Option<UsageSample>,
    source: UsageSource,
) -> UsageSample {
    let (cgroup, runtime) = (cgroup.unwrap_or_default(), runtime.unwrap_or_default());
    match source {
        UsageSource::Cgroups => cgroup.or(runtime),
        UsageSource::Runtime => runtime.or(cgroup),
    }
}

/// Whether the network of every pod that has one was read here.
pub(crate) fn has_networks(targets: &[PodTarget], cgroups: &CgroupReadings) -> bool {
    let mut pods = targets.iter().filter(|pod| pod.has_network);
    pods.all(|pod| cgroups.networks.contains_key(&pod.uid))
}

/// Whether the numbers of every pod and container are in their cgroups: then no runtime is asked.
pub(crate) fn cgroups_suffice(targets: &[PodTarget], cgroups: &CgroupReadings) -> bool {
    let complete = |reading: Option<&Arc<CgroupSample>>| {
        reading.is_some_and(|read| from_cgroup::usage(&read.stats, read.at).is_complete())
    };
    targets.iter().all(|pod| {
        let mut containers = pod.containers.iter();
        complete(cgroups.pods.get(&pod.uid))
            && containers.all(|container| complete(cgroups.containers.get(&container.id)))
    })
}

/// The samples of the node's own services and of all pods.
pub(crate) fn system(
    cgroups: &CgroupReadings,
    settings: &SystemCgroups,
    rates: &mut CpuRates,
) -> Vec<SystemSample> {
    let pods = cgroups.kubepods.iter().map(|read| (PODS, read));
    let services = cgroups.system.iter().map(|(name, read)| (*name, read));
    let mut sample = |(name, read): (&'static str, &Arc<CgroupSample>)| {
        // Identifiers of pods and containers have no slash.
        let key = format!("system/{name}").into();
        SystemSample {
            name,
            started_at: (name == KUBELET).then_some(settings.started_at),
            usage: rated(rates, &key, from_cgroup::usage(&read.stats, read.at)),
        }
    };
    services.chain(pods).map(&mut sample).collect()
}

/// With the usage of processors per second.
fn rated(rates: &mut CpuRates, key: &Arc<str>, mut usage: UsageSample) -> UsageSample {
    if let Some(cpu) = &mut usage.cpu {
        cpu.nano_cores = rates.add(key, cpu.at, cpu.usage_ns);
    }
    usage
}

/// The samples of pods. A container of which nothing is known is omitted: it has exited meanwhile.
pub(crate) fn pods(
    targets: &[PodTarget],
    readings: &Readings,
    source: UsageSource,
    rates: &mut CpuRates,
) -> Vec<PodSample> {
    let mut all = Vec::with_capacity(targets.len());
    for pod in targets {
        let usage = rated(rates, &pod.uid, readings.pod(&pod.uid, source));
        let mut sample = PodSample {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            started_at: pod.started_at,
            usage,
            network: readings.network(&pod.uid),
            processes: readings.processes(&pod.uid),
            cgroup: readings.cgroups.pods.get(&pod.uid).cloned(),
            containers: Vec::with_capacity(pod.containers.len()),
            volumes: readings.disks.volumes(pod),
            ephemeral_storage: None,
        };
        for container in &pod.containers {
            let usage = rated(
                rates,
                &container.id,
                readings.container(&container.id, source),
            );
            if usage == UsageSample::default() {
                continue;
            }
            sample.containers.push(ContainerSample {
                name: container.name.clone(),
                id: container.id.clone(),
                started_at: container.started_at,
                usage,
                rootfs: readings.rootfs(container),
                logs: readings.logs(container),
                image: container.image.clone(),
                cpu_spec: container.cpu_spec,
                cgroup: readings.cgroups.containers.get(&container.id).cloned(),
            });
        }
        if pod.etc_hosts.is_some() {
            let (containers, volumes) = (&sample.containers, &sample.volumes);
            sample.ephemeral_storage = readings
                .disks
                .ephemeral_storage(&pod.uid, containers, volumes);
        }
        // The runtime and the kernel know nothing of it: it has ended meanwhile.
        if sample.usage.cpu.is_some()
            || sample.usage.memory.is_some()
            || !sample.containers.is_empty()
        {
            all.push(sample);
        }
    }
    all
}

#[cfg(test)]
mod tests;
