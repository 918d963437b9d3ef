//! Conditions: the node's own are replaced, those of others are kept (kubelet: `mergePodStatus`).

use rubelet_pod_plan::intents::DISRUPTION_TARGET;
use serde_json::{Value, json};

use super::{merge_context::MergeContext, time};

/// Conditions that the node owns.
const OWN: [&str; 8] = [
    "PodScheduled",
    "Ready",
    "Initialized",
    "ContainersReady",
    "PodResizeInProgress",
    "PodResizePending",
    "PodReadyToStartContainers",
    "AllContainersRestarting",
];

/// A list of conditions with those of others first, as they are, and then ours. One whose status
/// did not change keeps the time of its last change.
pub(super) fn merge(
    theirs: &[Value],
    ours: &[Value],
    ends: bool,
    facts: &MergeContext<'_>,
) -> Vec<Value> {
    let mut merged: Vec<Value> = theirs.iter().filter(|one| !is_own(one)).cloned().collect();
    for condition in ours {
        let old = find(theirs, kind(condition));
        if is_own(condition) {
            merged.push(kept_time(condition, old, facts));
        } else if kind(condition) == DISRUPTION_TARGET && ends {
            let new = kept_time(condition, old, facts);
            match merged.iter_mut().find(|one| kind(one) == DISRUPTION_TARGET) {
                Some(old) => *old = new,
                None => merged.push(new),
            }
        }
    }
    merged
}

/// A pod that has ended is not ready, whatever its containers last reported.
pub(super) fn end(
    conditions: &mut [Value],
    theirs: &[Value],
    phase: &str,
    facts: &MergeContext<'_>,
) {
    const READY: [&str; 2] = ["Ready", "ContainersReady"];
    let is_ready = |one: &Value| READY.contains(&kind(one)) && one["status"] == "True";
    if !conditions.iter().any(is_ready) {
        return;
    }
    let reason = if phase == "Succeeded" {
        "PodCompleted"
    } else {
        "PodFailed"
    };
    for condition in conditions {
        let name = kind(condition).to_owned();
        if !READY.contains(&&*name) {
            continue;
        }
        let old = find(theirs, &name).filter(|old| old["status"] == "False");
        let since = old.map(|old| old["lastTransitionTime"].clone());
        condition["status"] = "False".into();
        condition["reason"] = reason.into();
        condition["lastTransitionTime"] = since
            .filter(Value::is_string)
            .unwrap_or_else(|| time(facts.now));
        if let Some(fields) = condition.as_object_mut() {
            fields.remove("message");
        }
    }
}

/// Our condition, with the times of the API's copy where the status is the same.
fn kept_time(ours: &Value, old: Option<&Value>, facts: &MergeContext<'_>) -> Value {
    let mut condition = ours.clone();
    if let Some(old) = old.filter(|old| old["status"] == ours["status"]) {
        for time in ["lastTransitionTime", "lastProbeTime"] {
            if old[time].is_string() {
                condition[time] = old[time].clone();
            }
        }
    }
    if facts.mirror
        && let Some(fields) = condition.as_object_mut()
    {
        // It counts the edits of the manifest, and the mirror pod is another one after each.
        fields.remove("observedGeneration");
    }
    condition
}

pub(super) fn kind(condition: &Value) -> &str {
    condition["type"].as_str().unwrap_or_default()
}

fn find<'a>(conditions: &'a [Value], name: &str) -> Option<&'a Value> {
    conditions.iter().find(|one| kind(one) == name)
}

fn is_own(condition: &Value) -> bool {
    OWN.contains(&kind(condition))
}

/// The key of a condition, for directives of a strategic merge patch.
pub(super) fn key(condition: &Value) -> Value {
    json!({ "type": condition["type"] })
}
