//! The node's reports to the cluster.

use super::{
    Check, CheckResult, at_least, label_key_problem, label_value_problem, not_zero, one_of, range,
    violation,
};

pub(super) fn validate(check: &Check<'_>) -> CheckResult {
    let config = check.config;
    at_least(
        "nodeLeaseDurationSeconds",
        config.node_lease_duration_seconds,
        1,
    )?;
    not_zero(
        "nodeStatusUpdateFrequency",
        config.node_status_update_frequency,
    )?;
    at_least("nodeStatusMaxImages", config.node_status_max_images, -1)?;
    at_least("eventRecordQPS", config.event_record_qps, 0)?;
    at_least("eventBurst", config.event_burst, 0)?;
    at_least("kubeAPIQPS", config.kube_api_qps, 0)?;
    at_least("kubeAPIBurst", config.kube_api_burst, 0)?;
    range(
        "iptablesMasqueradeBit",
        config.iptables_masquerade_bit,
        0,
        31,
    )?;
    range("iptablesDropBit", config.iptables_drop_bit, 0, 31)?;
    let strategies = ["Watch", "Cache", "Get"];
    let strategy = &config.config_map_and_secret_change_detection_strategy;
    one_of(
        "configMapAndSecretChangeDetectionStrategy",
        strategy,
        &strategies,
    )?;
    taints(check)
}

fn taints(check: &Check<'_>) -> CheckResult {
    for (index, taint) in check.config.register_with_taints.iter().enumerate() {
        let field = |name: &str| format!("registerWithTaints[{index}].{name}");
        if let Some(problem) = label_key_problem(&taint.key) {
            return violation(
                [field("key").as_str()],
                format!("{problem}; is {:?}", taint.key),
            );
        }
        if let Some(problem) = label_value_problem(&taint.value) {
            return violation(
                [field("value").as_str()],
                format!("{problem}; is {:?}", taint.value),
            );
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        one_of(&field("effect"), &taint.effect, &effects)?;
        if taint.time_added.is_some() {
            let message = "must not be given; the API server sets it".to_owned();
            return violation([field("timeAdded").as_str()], message);
        }
    }
    Ok(())
}
