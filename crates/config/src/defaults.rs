//! Defaults that depend on several fields, and which values count as not given.
//!
//! Source of the rules: `pkg/kubelet/apis/config/v1beta1/defaults.go` and `loadConfigFile` in
//! `cmd/kubelet/app/server.go`, `applyLegacyDefaults` in `cmd/kubelet/app/options` of Kubernetes 1.36.

use crate::field::{Field, Kind, Zero};
use crate::fields::{DEFAULT_EVICTION_HARD, KubeletConfiguration};
use crate::origins::Origins;
use rubelet_base::duration::parse_go;
use rubelet_yaml::join_path;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Removes zero values that upstream's types can't distinguish from fields that are not given.
pub(crate) fn drop_zeros(
    values: &mut Map<String, Value>,
    fields: &[Field],
    path: &str,
    origins: &mut Origins,
) {
    for field in fields {
        let Some(value) = values.get_mut(field.name) else {
            continue;
        };
        let path = join_path(path, field.name);
        if let (Kind::Section(inner), Value::Object(inner_values)) = (field.kind, &mut *value) {
            drop_zeros(inner_values, inner, &path, origins);
        } else if field.zero == Zero::Unset && is_zero(field.kind, value) {
            values.remove(field.name);
            origins.clear(&path);
        }
    }
}

fn is_zero(kind: Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Duration, Value::String(text)) => parse_go(text) == Ok(Duration::ZERO),
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Number(number)) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// Legacy defaults of a kubelet in a cluster without `--config`: field and value. They allow
/// anonymous access. Drop-ins and flags override them.
pub(crate) fn legacy_defaults() -> [(&'static str, Value); 4] {
    [
        ("authentication.anonymous.enabled", json!(true)),
        ("authentication.webhook.enabled", json!(false)),
        ("authorization.mode", json!("AlwaysAllow")),
        ("readOnlyPort", json!(10_255)),
    ]
}

/// If the file has no eviction thresholds, those of a drop-in are merged into the defaults.
pub(crate) fn add_defaults_before_drop_ins(values: &mut Map<String, Value>) {
    if !values.contains_key("evictionHard") {
        let defaults = DEFAULT_EVICTION_HARD
            .iter()
            .map(|&(key, text)| (key.into(), text.into()));
        values.insert("evictionHard".into(), Value::Object(defaults.collect()));
    }
}

/// Defaults that are derived from other fields. Flags are applied later and change none of these.
pub(crate) fn add_derived_defaults(values: &mut Map<String, Value>) {
    let merges = values.get("mergeDefaultEvictionSettings") == Some(&Value::Bool(true));
    if let Some(Value::Object(thresholds)) = values.get_mut("evictionHard")
        && merges
    {
        for (key, text) in DEFAULT_EVICTION_HARD {
            thresholds.entry(key).or_insert_with(|| text.into());
        }
    }
    if let Some(update) = values.get("nodeStatusUpdateFrequency").cloned() {
        values.entry("nodeStatusReportFrequency").or_insert(update);
    }
    let parallel = values.get("maxParallelImagePulls").and_then(Value::as_i64);
    if parallel.is_some_and(|count| count >= 2) {
        values.entry("serializeImagePulls").or_insert(json!(false));
    }
}

/// Values that mean the same as the default.
pub(crate) fn normalise(config: &mut KubeletConfiguration) {
    config.pod_pids_limit = config.pod_pids_limit.max(-1);
}
