//! From the configuration to the statistics of the node.

use std::sync::Arc;

use anyhow::Context as _;
use rubelet_cgroup_plan::CgroupDriver;
use rubelet_config::{Flags, Resolved};
use rubelet_node_plan::{CgroupRoot, CgroupTree};
use rubelet_stats::{StatsCollector, StatsSettings, UsageSource};
use rubelet_view::StatsParts;

use super::{build::Built, open::Opened};

/// What measures the node and its pods when somebody asks.
pub(super) fn parts(
    flags: &Flags,
    resolved: &Resolved,
    opened: &Opened,
    built: &Built,
) -> anyhow::Result<StatsParts> {
    let collector = StatsCollector::new(StatsSettings {
        pods: Arc::clone(&built.agent.pods),
        runtime: Arc::clone(&built.runtime),
        cgroups: opened.node.cgroups.clone(),
        trees: trees(resolved)?,
        source: match resolved.gates.enabled("PodAndContainerStatsFromCRI") {
            true => UsageSource::Runtime,
            false => UsageSource::Cgroups,
        },
        clock: opened.clock.clone(),
        root: "/".into(),
    });
    Ok(StatsParts {
        collector: Arc::new(collector),
        max_age: flags.housekeeping_interval(),
    })
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
