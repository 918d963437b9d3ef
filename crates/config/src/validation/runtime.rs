//! The container runtime and how it is used.

use super::{Check, CheckResult, not_zero, one_of, violation};
use crate::EMBEDDED;
use std::time::Duration;

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let (runtime, images) = (
        &config.container_runtime_endpoint,
        &config.image_service_endpoint,
    );
    let inside = runtime.is_empty() || runtime == EMBEDDED;
    if !inside {
        endpoint("containerRuntimeEndpoint", runtime)?;
    }
    if !images.is_empty() {
        endpoint("imageServiceEndpoint", images)?;
        if inside {
            let message = "needs containerRuntimeEndpoint: the embedded runtime has its own images";
            return violation(["imageServiceEndpoint"], message.to_owned());
        }
    }
    not_zero("runtimeRequestTimeout", config.runtime_request_timeout)?;
    one_of(
        "cgroupDriver",
        &config.cgroup_driver,
        &["cgroupfs", "systemd"],
    )?;
    let modes = ["none", "hairpin-veth", "promiscuous-bridge"];
    one_of("hairpinMode", &config.hairpin_mode, &modes)?;
    crash_loop(check)
}

fn endpoint(field: &str, value: &str) -> CheckResult {
    let path = value.strip_prefix("unix://").unwrap_or(value);
    match path.starts_with('/') && path.len() > 1 {
        true => Ok(()),
        false => {
            let example = "unix:///run/containerd/containerd.sock";
            let message = format!("must be a unix socket such as {example}, is {value:?}");
            violation([field], message)
        }
    }
}

fn crash_loop(check: &Check<'_>) -> CheckResult {
    let field = "crashLoopBackOff.maxContainerRestartPeriod";
    if !check.gates.enabled("KubeletCrashLoopBackOffMax") {
        return match (check.given)(field) {
            true => violation(
                [field],
                "needs the feature gate KubeletCrashLoopBackOffMax".to_owned(),
            ),
            false => Ok(()),
        };
    }
    let period = check
        .config
        .crash_loop_back_off
        .max_container_restart_period;
    match (Duration::from_secs(1)..=Duration::from_secs(300)).contains(&period) {
        true => Ok(()),
        false => {
            let period = rubelet_base::duration::format_go(period);
            violation([field], format!("must be from 1s to 300s, is {period}"))
        }
    }
}
