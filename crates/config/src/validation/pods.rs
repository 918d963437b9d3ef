//! Limits of pods.

use super::{Check, CheckResult, at_least, ip_address, one_of, violation};
use std::time::Duration;

/// Sysctls that belong to one of a pod's namespaces, by prefix.
const NAMESPACED: [&str; 5] = [
    "kernel.shm",
    "kernel.msg",
    "kernel.sem",
    "fs.mqueue.",
    "net.",
];

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    at_least("maxPods", config.max_pods, 0)?;
    at_least("podsPerCore", config.pods_per_core, 0)?;
    for (index, address) in config.cluster_dns.iter().enumerate() {
        ip_address(&format!("clusterDNS[{index}]"), address)?;
    }
    if !config.pod_cidr.is_empty() {
        for part in config.pod_cidr.split(',') {
            cidr("podCIDR", part.trim())?;
        }
    }
    for (index, pattern) in config.allowed_unsafe_sysctls.iter().enumerate() {
        sysctl(&format!("allowedUnsafeSysctls[{index}]"), pattern)?;
    }
    cfs_quota_period(check)?;
    let swap = ["", "LimitedSwap", "NoSwap"];
    one_of(
        "memorySwap.swapBehavior",
        &config.memory_swap.swap_behavior,
        &swap,
    )?;
    user_ids(config.user_namespaces.ids_per_pod)
}

fn cidr(field: &str, value: &str) -> CheckResult {
    let valid = value.split_once('/').is_some_and(|(address, bits)| {
        let most = match address.parse::<core::net::IpAddr>() {
            Ok(address) if address.is_ipv4() => 32,
            Ok(_) => 128,
            Err(_) => return false,
        };
        bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    });
    match valid {
        true => Ok(()),
        false => violation(
            [field],
            format!("must be a range such as 10.1.0.0/24, is {value:?}"),
        ),
    }
}

fn sysctl(field: &str, pattern: &str) -> CheckResult {
    let name = pattern
        .strip_suffix('*')
        .unwrap_or(pattern)
        .replace('/', ".");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    let syntax = pattern.len() <= 253
        && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && name.chars().all(allowed);
    if !syntax {
        let message = format!(
            "must be the name of a sysctl such as kernel.msgmax, or a prefix such as kernel.shm*, \
             is {pattern:?}"
        );
        return violation([field], message);
    }
    match NAMESPACED.iter().any(|prefix| name.starts_with(prefix)) {
        true => Ok(()),
        false => {
            let message = format!(
                "must belong to a pod's namespaces: kernel.shm*, kernel.msg*, kernel.sem, \
                 fs.mqueue.* or net.*; is {pattern:?}"
            );
            violation([field], message)
        }
    }
}

fn cfs_quota_period(check: &Check<'_>) -> CheckResult {
    let field = ["cpuCFSQuotaPeriod"];
    let period = check.config.cpu_cfs_quota_period;
    let shown = rubelet_base::duration::format_go(period);
    if !check.gates.enabled("CustomCPUCFSQuotaPeriod") && period != Duration::from_millis(100) {
        let message = format!(
            "needs the feature gate CustomCPUCFSQuotaPeriod to be other than 100ms, is {shown}"
        );
        return violation(field, message);
    }
    match (Duration::from_millis(1)..=Duration::from_secs(1)).contains(&period) {
        true => Ok(()),
        false => violation(field, format!("must be from 1ms to 1s, is {shown}")),
    }
}

fn user_ids(count: i64) -> CheckResult {
    let field = ["userNamespaces.idsPerPod"];
    match count >= 65_536 && count % 65_536 == 0 && count <= i64::from(u32::MAX) {
        true => Ok(()),
        false => {
            let message =
                format!("must be a multiple of 65536 from 65536 to 4294967295, is {count}");
            violation(field, message)
        }
    }
}
