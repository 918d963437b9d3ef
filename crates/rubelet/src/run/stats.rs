//! From the configuration to the statistics of the node.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_config::{Flags, Resolved};
use rubelet_cri_grpc::socket_path;
use rubelet_kubelet::pod_host::{PodFiles, PodHost};
use rubelet_node_plan::{CgroupRoot, CgroupTree};
use rubelet_stats::{
    PodDirectories, PodDirectoriesOf, RuntimeCgroup, StatsCollector, StatsSettings, SystemCgroups,
    UsageSource, VolumeDirectory,
};
use rubelet_view::StatsParts;

use super::{build::Built, node::configured_cgroup, open::Opened};

/// What measures the node and its pods when somebody asks.
pub(super) fn parts(
    flags: &Flags,
    resolved: &Resolved,
    opened: &Opened,
    built: &Built,
) -> anyhow::Result<StatsParts> {
    let host = Arc::clone(&built.host);
    let from_runtime = resolved.gates.enabled("PodAndContainerStatsFromCRI");
    opened.metrics.facts.set_metrics_provider(from_runtime);
    let collector = StatsCollector::new(StatsSettings {
        pods: Arc::clone(&built.agent.pods),
        runtime: Arc::clone(&built.runtime),
        images: Arc::clone(&built.images),
        cgroups: opened.node.cgroups.clone(),
        trees: trees(resolved)?,
        system: system(flags, resolved, opened)?,
        source: match from_runtime {
            true => UsageSource::Runtime,
            false => UsageSource::Cgroups,
        },
        clock: opened.clock.clone(),
        machine: "/".into(),
        root: flags.root_dir().into(),
        logs: resolved.config.pod_logs_dir.clone().into(),
        cpu_period_us: resolved
            .config
            .cpu_cfs_quota
            .then(|| micros(resolved.config.cpu_cfs_quota_period)),
        volume_period: resolved.config.volume_stats_agg_period,
        metrics: Arc::clone(&opened.metrics),
        directories: directories(Arc::clone(&built.host)),
        log_directory: Arc::new(move |pod, container| {
            // All logs of a container are in one directory.
            let mut path = host.log_path(pod, container, 0);
            path.pop();
            path
        }),
    });
    Ok(StatsParts {
        collector: Arc::new(collector),
        max_age: flags.housekeeping_interval(),
    })
}

/// Where the node's own services are.
fn system(flags: &Flags, resolved: &Resolved, opened: &Opened) -> anyhow::Result<SystemCgroups> {
    let config = &resolved.config;
    let named = flags.runtime_cgroups().unwrap_or_default();
    let runtime = match configured_cgroup("--runtime-cgroups", named)? {
        Some(path) => RuntimeCgroup::Named(path),
        None if opened.embedded.is_some() => RuntimeCgroup::None,
        None => RuntimeCgroup::OfListener(socket_path(&config.container_runtime_endpoint)?),
    };
    Ok(SystemCgroups {
        runtime,
        misc: configured_cgroup("systemCgroups", &config.system_cgroups)?,
        ..SystemCgroups::of_agent(opened.clock.now())
    })
}

/// The directories of a pod, as the host lays them out.
fn directories(host: Arc<dyn PodHost>) -> PodDirectoriesOf {
    Arc::new(move |pod| {
        let PodFiles { volumes, etc_hosts } = host.measured_files(pod);
        let volumes = volumes.into_iter().map(|volume| VolumeDirectory {
            name: volume.name.into(),
            path: volume.path,
            is_ephemeral: volume.is_ephemeral,
            may_have_quota: volume.may_have_quota,
        });
        PodDirectories {
            volumes: volumes.collect(),
            etc_hosts,
        }
    })
}

fn micros(period: Duration) -> u64 {
    u64::try_from(period.as_micros()).unwrap_or(u64::MAX)
}

/// The names that cgroups of pods may have: the runtime decides on the driver. Without
/// `cgroupsPerQOS` pods have none.
fn trees(resolved: &Resolved) -> anyhow::Result<Vec<CgroupTree>> {
    let config = &resolved.config;
    if !config.cgroups_per_qos {
        return Ok(Vec::new());
    }
    let root = CgroupRoot::parse(&config.cgroup_root).context("cgroupRoot")?;
    let drivers = [CgroupDriver::Cgroupfs, CgroupDriver::Systemd];
    let trees = drivers.map(|driver| CgroupTree::new(&root, driver).context("cgroupRoot"));
    trees.into_iter().collect()
}
