//! Checks of the host before anything starts.

use std::path::Path;

use anyhow::{Context as _, bail};
use rubelet_cgroup_plan::CgroupLayout;
use rubelet_config::Resolved;
use rubelet_host::{CgroupFs, machine};
use tracing::warn;

/// Rejects a host that the configuration excludes. Without such a configuration, a standalone node
/// continues with a warning: it can't be drained to another one.
pub(super) fn check(resolved: &Resolved, cgroups: &CgroupFs) -> anyhow::Result<()> {
    let config = &resolved.config;
    let given = |field: &str| resolved.origins.within(field).is_some();
    if cgroups.layout() != CgroupLayout::V2 && config.fail_cgroup_v1 {
        if given("failCgroupV1") {
            bail!(
                "this host uses cgroup version 1 and failCgroupV1 is true; boot with \
                 systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false"
            );
        }
        warn!(
            "This host uses cgroup version 1, which is no longer maintained; set failCgroupV1: \
             false to accept it silently"
        );
    }
    let swap = machine::swap_is_on(Path::new("/")).context("cannot detect whether swap is on")?;
    if swap && config.fail_swap_on {
        if given("failSwapOn") {
            bail!(
                "swap is on and failSwapOn is true; switch it off with swapoff -a, or set \
                 failSwapOn: false"
            );
        }
        let pods = match config.memory_swap.swap_behavior.as_str() {
            "LimitedSwap" => "Burstable pods use a share of it",
            _ => "pods do not use it",
        };
        warn!("Swap is on; {pods}. Set failSwapOn: false to accept it silently");
    }
    Ok(())
}
