//! Settings of eviction from the configuration.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::anyhow;
use rubelet_base::ErrorChain;
use rubelet_config::{KubeletConfiguration, Resolved};
use rubelet_host::CgroupFs;
use rubelet_kubelet::{
    eviction::{EvictionSettings, KernelMemoryAlarm, MachineLevels, MemoryAlarm},
    host::LocalHost,
    local_storage::LocalStorageSettings,
};
use rubelet_node_plan::eviction::{EvictionPolicy, EvictionTexts};

use super::allocatable;

/// The settings; `None` if there is no threshold. `root` is `--root-dir`.
///
/// # Errors
/// A threshold can't be parsed.
pub(super) fn settings(
    config: &KubeletConfiguration,
    root: &Path,
    cgroups: &CgroupFs,
    host: Arc<LocalHost>,
) -> anyhow::Result<Option<EvictionSettings>> {
    let texts = EvictionTexts {
        hard: &config.eviction_hard,
        soft: &config.eviction_soft,
        soft_grace: &config.eviction_soft_grace_period,
        min_reclaim: &config.eviction_minimum_reclaim,
        enforces_pods: allocatable::enforces_pods(config),
    };
    let seconds = u64::try_from(config.eviction_max_pod_grace_period).unwrap_or(0);
    let policy = EvictionPolicy::parse(
        &texts,
        config.eviction_pressure_transition_period,
        Duration::from_secs(seconds),
    );
    let policy = policy.map_err(|error| anyhow!("{}", ErrorChain(&error)))?;
    let levels = MachineLevels {
        root: root.to_owned(),
        cgroups: cgroups.clone(),
        kubepods: host.kubepods(),
    };
    Ok((!policy.thresholds.is_empty()).then(|| EvictionSettings {
        policy,
        levels: Arc::new(levels),
        pods: host,
        alarm: KernelMemoryAlarm::new(cgroups).map(|alarm| Arc::new(alarm) as Arc<dyn MemoryAlarm>),
    }))
}

/// The settings of the limits of local storage; `None` if there are none: without a cluster there are no
/// pods that are evicted.
pub(super) fn local_storage(
    resolved: &Resolved,
    root: &Path,
    cgroups: &CgroupFs,
    host: &Arc<LocalHost>,
) -> Option<LocalStorageSettings> {
    let is_on = resolved.joined && resolved.config.local_storage_capacity_isolation;
    is_on.then(|| LocalStorageSettings {
        levels: Arc::new(MachineLevels {
            root: root.to_owned(),
            cgroups: cgroups.clone(),
            kubepods: host.kubepods(),
        }),
        pods: Arc::clone(host) as _,
    })
}
