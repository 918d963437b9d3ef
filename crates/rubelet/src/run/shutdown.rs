//! Settings of graceful shutdowns of the node from the configuration.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use rubelet_config::KubeletConfiguration;
use rubelet_host::{BusAddress, logind::Logind};
use rubelet_kubelet::node_shutdown::{LogindShutdowns, ShutdownSettings};
use rubelet_node_plan::node_shutdown::{ShutdownGroup, ShutdownPolicy};

/// The kubelet's file with the times of the last shutdown, in `--root-dir`.
const RECORD: &str = "graceful_node_shutdown_state";

/// The settings; `None` if pods are not waited for. `root` is `--root-dir`.
///
/// # Errors
/// The environment names no D-Bus that can be used.
pub(super) fn settings(
    config: &KubeletConfiguration,
    root: &Path,
) -> anyhow::Result<Option<ShutdownSettings>> {
    let Some(policy) = policy(config) else {
        return Ok(None);
    };
    let address = BusAddress::of_system()
        .context("shutdownGracePeriod needs logind, which is reached over D-Bus")?;
    Ok(Some(ShutdownSettings {
        policy,
        service: Arc::new(LogindShutdowns(Logind::on_bus(address))),
        record: root.join(RECORD),
    }))
}

fn policy(config: &KubeletConfiguration) -> Option<ShutdownPolicy> {
    let by_priority = &config.shutdown_grace_period_by_pod_priority;
    let groups = by_priority.iter().map(|entry| ShutdownGroup {
        priority: entry.priority,
        period: Duration::from_secs(
            u64::try_from(entry.shutdown_grace_period_seconds).unwrap_or(0),
        ),
    });
    ShutdownPolicy::of_priorities(groups.collect()).or_else(|| {
        ShutdownPolicy::of_periods(
            config.shutdown_grace_period,
            config.shutdown_grace_period_critical_pods,
        )
    })
}
