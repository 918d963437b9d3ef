//! What is measured: the pods of the board that have running containers.

use std::{path::PathBuf, sync::Arc};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::ContainerState};
use rubelet_cgroup_plan::{CgroupPath, cpu};
use rubelet_node_plan::CgroupTree;
use rubelet_node_state::pod_board::PodEntry;

use crate::sample::CpuSpec;

/// A pod to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodTarget {
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) uid: Arc<str>,
    pub(crate) started_at: Timestamp,
    /// The cgroups that the pod may have, one for each driver.
    pub(crate) cgroups: Vec<CgroupPath>,
    pub(crate) containers: Vec<ContainerTarget>,
    /// False if it is in the node's network namespace.
    pub(crate) has_network: bool,
    /// Its volumes, where they are to be measured.
    pub(crate) volumes: Vec<VolumeDirectory>,
    /// Its `/etc/hosts`, where volumes are to be measured.
    pub(crate) etc_hosts: Option<PathBuf>,
}

/// A volume to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeDirectory {
    /// `name`.
    pub name: Arc<str>,
    /// Its directory, which may be missing.
    pub path: PathBuf,
    /// Whether it takes local ephemeral storage.
    pub is_ephemeral: bool,
    /// Whether the kernel may count it, and only what its pod writes.
    pub may_have_quota: bool,
}

/// Where the files of a pod are that are not those of its containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodDirectories {
    /// Its volumes, as far as their space is measured.
    pub volumes: Vec<VolumeDirectory>,
    /// Its `/etc/hosts`, which may be missing.
    pub etc_hosts: Option<PathBuf>,
}

/// The directories of a pod.
pub type PodDirectoriesOf = Arc<dyn Fn(&Pod) -> PodDirectories + Send + Sync>;

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerTarget {
    pub(crate) name: Arc<str>,
    pub(crate) id: Arc<str>,
    pub(crate) started_at: Timestamp,
    /// The directory of its log files.
    pub(crate) logs: PathBuf,
    pub(crate) image: Arc<str>,
    pub(crate) cpu_spec: CpuSpec,
}

/// The directory of the log files of a container of a pod.
pub type LogDirectory = Arc<dyn Fn(&Pod, &str) -> PathBuf + Send + Sync>;

/// What names the cgroups and log files of pods, and their limits.
pub(crate) struct TargetRules<'a> {
    /// Names of the pods' cgroups; one tree for each driver that may be in use.
    pub(crate) trees: &'a [CgroupTree],
    /// Directories of the logs of containers.
    pub(crate) log_directory: &'a LogDirectory,
    /// `cpuCFSQuotaPeriod` in microseconds; `None` without `cpuCFSQuota`.
    pub(crate) cpu_period_us: Option<u64>,
    /// Directories of volumes; `None` if they are not measured.
    pub(crate) directories: Option<&'a PodDirectoriesOf>,
}

/// The pods to measure, ordered by namespace, name and UID.
pub(crate) fn targets<'a>(
    entries: impl IntoIterator<Item = &'a PodEntry>,
    rules: &TargetRules<'_>,
) -> Vec<PodTarget> {
    let found = entries.into_iter().filter_map(|entry| target(entry, rules));
    let mut all: Vec<PodTarget> = found.collect();
    all.sort_unstable_by(|one, other| {
        (&one.namespace, &one.name, &one.uid).cmp(&(&other.namespace, &other.name, &other.uid))
    });
    all
}

fn target(entry: &PodEntry, rules: &TargetRules<'_>) -> Option<PodTarget> {
    let containers: Vec<_> = entry
        .status
        .all_containers()
        .filter_map(|status| match status.state {
            ContainerState::Running { started_at } if !status.container_id.is_empty() => {
                Some(ContainerTarget {
                    name: (*status.name).into(),
                    id: (*status.container_id).into(),
                    started_at,
                    logs: (rules.log_directory)(&entry.pod, &status.name),
                    image: (*status.image).into(),
                    cpu_spec: cpu_spec(&entry.pod, &status.name, rules.cpu_period_us),
                })
            }
            _ => None,
        })
        .collect();
    let pod = &entry.pod;
    let cgroups = rules
        .trees
        .iter()
        .map(|tree| tree.pod(pod.spec.qos, &pod.uid));
    if containers.is_empty() {
        return None;
    }
    let directories = rules.directories.map(|of| of(pod)).unwrap_or_default();
    Some(PodTarget {
        namespace: Arc::clone(&pod.name.namespace),
        name: Arc::clone(&pod.name.name),
        uid: pod.uid.as_str().into(),
        started_at: entry.status.start_time,
        // A UID that is no name of a cgroup has none.
        cgroups: cgroups.flatten().collect(),
        containers,
        has_network: !pod.spec.host_network,
        volumes: directories.volumes,
        etc_hosts: directories.etc_hosts,
    })
}

/// What the runtime was told of a container's processors.
fn cpu_spec(pod: &Pod, container: &str, period_us: Option<u64>) -> CpuSpec {
    let container = pod.spec.container(container);
    let resources = container.map(|container| &container.resources);
    let limit = resources
        .and_then(|of| of.limits.cpu)
        .filter(|limit| *limit > 0);
    let request = resources.and_then(|of| of.requests.cpu).or(limit);
    CpuSpec {
        shares: cpu::shares(request.unwrap_or(0)),
        quota_us: limit
            .zip(period_us)
            .map(|(limit, period)| cpu::quota_us(limit, period)),
        // The kernel's default.
        period_us: period_us.unwrap_or(100_000),
    }
}
