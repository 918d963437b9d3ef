//! Graceful node shutdown.

use super::{Check, CheckResult, at_least, violation};
use rubelet_base::duration::format_go;
use std::time::Duration;

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    let (all, critical) = (
        config.shutdown_grace_period,
        config.shutdown_grace_period_critical_pods,
    );
    let (all_field, critical_field) = ("shutdownGracePeriod", "shutdownGracePeriodCriticalPods");
    for (field, period) in [(all_field, all), (critical_field, critical)] {
        if period.is_zero() {
            continue;
        }
        if !check.gates.enabled("GracefulNodeShutdown") {
            return violation(
                [field],
                "needs the feature gate GracefulNodeShutdown".to_owned(),
            );
        }
        if period < Duration::from_secs(1) {
            return violation(
                [field],
                format!("must be 0s, or 1s or more, is {}", format_go(period)),
            );
        }
    }
    if critical > all {
        let message = format!(
            "shutdownGracePeriodCriticalPods must not be more than shutdownGracePeriod; \
             they are {} and {}",
            format_go(critical),
            format_go(all)
        );
        return violation([critical_field, all_field], message);
    }
    let by_priority = "shutdownGracePeriodByPodPriority";
    if config.shutdown_grace_period_by_pod_priority.is_empty() {
        return Ok(());
    }
    for (index, group) in config
        .shutdown_grace_period_by_pod_priority
        .iter()
        .enumerate()
    {
        let field = format!("{by_priority}[{index}].shutdownGracePeriodSeconds");
        at_least(&field, group.shutdown_grace_period_seconds, 0)?;
    }
    if !check
        .gates
        .enabled("GracefulNodeShutdownBasedOnPodPriority")
    {
        let message = "needs the feature gate GracefulNodeShutdownBasedOnPodPriority".to_owned();
        return violation([by_priority], message);
    }
    match all.is_zero() && critical.is_zero() {
        true => Ok(()),
        false => {
            let message = format!("cannot be used together with {all_field}");
            violation([by_priority, all_field], message)
        }
    }
}
