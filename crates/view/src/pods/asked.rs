//! Requested changes of a pod are shown as soon as they are stored, before the pod's task observes
//! them.

use rubelet_api::wire::seconds;
use rubelet_pod_plan::{
    OperatorIntents,
    intents::{DISRUPTION_TARGET, ExternalCondition},
};
use rubelet_server::is_agent_condition;
use serde_json::{Value, json};

/// Adds requested conditions and ephemeral containers to a v1 Pod.
pub(super) fn show(pod: &mut Value, intents: &OperatorIntents) {
    ephemeral(pod, intents);
    conditions(pod, intents);
}

fn ephemeral(pod: &mut Value, intents: &OperatorIntents) {
    if intents.ephemeral.is_empty() {
        return;
    }
    let texts = intents.ephemeral.iter();
    let all: Vec<Value> = texts
        .filter_map(|text| serde_json::from_str(text).ok())
        .collect();
    pod["spec"]["ephemeralContainers"] = all.into();
}

fn conditions(pod: &mut Value, intents: &OperatorIntents) {
    let shown = pod["status"]["conditions"].take();
    let mut shown = match shown {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    let asked = |kind: &Value| {
        let mut all = intents.conditions.iter();
        all.find(|condition| *kind == *condition.kind)
    };
    shown.retain(|condition| {
        let kind = condition["type"].as_str().unwrap_or_default();
        is_agent_condition(kind) || kind == DISRUPTION_TARGET || asked(&condition["type"]).is_some()
    });
    for condition in &mut shown {
        let kind = condition["type"].as_str().unwrap_or_default();
        if let Some(asked) = asked(&condition["type"])
            && !is_agent_condition(kind)
        {
            set(condition, asked);
        }
    }
    let missing = intents.conditions.iter().filter(|condition| {
        let there = shown.iter().any(|shown| shown["type"] == *condition.kind);
        !there && !is_agent_condition(&condition.kind)
    });
    // Upstream puts foreign conditions before its own.
    let mut all: Vec<Value> = missing
        .map(|condition| {
            let mut value = json!({ "type": *condition.kind, "lastProbeTime": null });
            set(&mut value, condition);
            value
        })
        .collect();
    all.append(&mut shown);
    if !all.is_empty() {
        pod["status"]["conditions"] = all.into();
    }
}

fn set(shown: &mut Value, asked: &ExternalCondition) {
    shown["status"] = asked.status.as_str().into();
    shown["lastTransitionTime"] = seconds(asked.last_transition).into();
    for (field, text) in [("reason", &asked.reason), ("message", &asked.message)] {
        if !text.is_empty() {
            shown[field] = (**text).into();
        } else if let Some(fields) = shown.as_object_mut() {
            fields.remove(field);
        }
    }
}
