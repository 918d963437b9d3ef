//! Thresholds at which pods are evicted.
//!
//! Source of the rule: `pkg/kubelet/eviction/helpers.go` of Kubernetes 1.36.

use super::{Check, CheckResult, Violation, alternatives};
use crate::quantity::{Sign, sign};
use rubelet_yaml::join_path;
use std::collections::BTreeMap;

const SIGNALS: [&str; 9] = [
    "memory.available",
    "allocatableMemory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
];

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    each("evictionHard", &config.eviction_hard, threshold)?;
    each("evictionSoft", &config.eviction_soft, threshold)?;
    each(
        "evictionSoftGracePeriod",
        &config.eviction_soft_grace_period,
        |text| {
            rubelet_base::duration::parse_go(text)
                .err()
                .map(|error| error.to_string())
        },
    )?;
    each(
        "evictionMinimumReclaim",
        &config.eviction_minimum_reclaim,
        reclaim,
    )?;
    for signal in config.eviction_soft.keys() {
        if !config.eviction_soft_grace_period.contains_key(signal) {
            let message = "needs an entry of the same name in evictionSoftGracePeriod".to_owned();
            return Err(Violation {
                fields: vec![join_path("evictionSoft", signal)],
                message,
            });
        }
    }
    Ok(())
}

fn each(
    field: &str,
    entries: &BTreeMap<String, String>,
    problem: impl Fn(&str) -> Option<String>,
) -> CheckResult {
    for (signal, text) in entries {
        let message = match SIGNALS.contains(&signal.as_str()) {
            false => format!("unknown signal; allowed are {}", alternatives(&SIGNALS)),
            true => match problem(text) {
                Some(message) => message,
                None => continue,
            },
        };
        return Err(Violation {
            fields: vec![join_path(field, signal)],
            message,
        });
    }
    Ok(())
}

fn threshold(text: &str) -> Option<String> {
    let valid = match text.strip_suffix('%') {
        Some(number) => number
            .parse::<f32>()
            .is_ok_and(|percent| (0.0..=100.0).contains(&percent)),
        None => sign(text) == Some(Sign::Positive),
    };
    (!valid).then(|| format!("must be a quantity such as 100Mi or from 0% to 100%, is {text:?}"))
}

fn reclaim(text: &str) -> Option<String> {
    let valid = match text.strip_suffix('%') {
        Some(number) => number.parse::<f32>().is_ok_and(|percent| percent > 0.0),
        None => matches!(sign(text), Some(Sign::Zero | Sign::Positive)),
    };
    (!valid).then(|| format!("must be a quantity such as 500Mi or a percentage, is {text:?}"))
}
