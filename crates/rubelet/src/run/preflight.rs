//! Checks of the host before anything starts.

use std::path::Path;

use anyhow::{Context as _, bail};
use rubelet_cgroup_plan::CgroupLayout;
use rubelet_config::Resolved;
use rubelet_host::{CgroupFs, machine};
use rubelet_node_plan::kernel_settings;
use tracing::{info, warn};

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
    if cgroups.layout() != CgroupLayout::V2 && resolved.gates.enabled("MemoryQoS") {
        warn!("The feature gate MemoryQoS has no effect: it needs cgroup version 2");
    }
    kernel_settings(config.protect_kernel_defaults)?;
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

/// `protectKernelDefaults`: whether settings that differ from what a kubelet requires are an error. The
/// machine's settings are never changed.
fn kernel_settings(protect: bool) -> anyhow::Result<()> {
    let read = |name: &str| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(file).ok()?.trim().parse().ok()
    };
    let differing: Vec<String> = kernel_settings::differing(read)
        .iter()
        .map(ToString::to_string)
        .collect();
    let differing = differing.join(", ");
    if protect && !differing.is_empty() {
        bail!(
            "protectKernelDefaults is true, and settings of the kernel differ from those that the \
             kubelet requires: {differing}; set them in /etc/sysctl.d"
        );
    }
    if !differing.is_empty() {
        info!(%differing, "Settings of the kernel differ from those that a kubelet sets; they are not changed");
    }
    Ok(())
}
