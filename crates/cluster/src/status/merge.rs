//! Our status over the API's copy of it (kubelet: `mergePodStatus`). Pure; the same two give the
//! same result, and merging again changes nothing.

use serde_json::{Map, Value};

use super::{
    conditions,
    containers::{self, List},
    merge_context::MergeContext,
};

/// The status to have at the API server: `ours`, with all that is not ours from `theirs`, and
/// without a step back: a terminal phase waits for the last container and then stays, a pod that
/// was running is never pending again, the start time is set once.
pub(super) fn merge(ours: &Value, theirs: &Value, facts: &MergeContext<'_>) -> Value {
    let mut merged = theirs.as_object().cloned().unwrap_or_default();
    let (was, is) = (is_terminal(&theirs["phase"]), is_terminal(&ours["phase"]));
    let ends = is && !was;
    let waits = ends && facts.running;
    let back = theirs["phase"] == "Running" && ours["phase"] == "Pending";
    if !was && !waits && !back {
        for field in ["phase", "reason", "message"] {
            set(&mut merged, field, &ours[field]);
        }
    } else if theirs["phase"].is_null() {
        merged.insert("phase".to_owned(), "Pending".into());
    }
    for field in ["hostIP", "hostIPs", "podIP", "podIPs"] {
        if !ours[field].is_null() {
            merged.insert(field.to_owned(), ours[field].clone());
        }
    }
    for field in ["startTime", "qosClass"] {
        if theirs[field].is_null() && !ours[field].is_null() {
            merged.insert(field.to_owned(), ours[field].clone());
        }
    }
    if !facts.mirror {
        let generation = |status: &Value| status["observedGeneration"].as_i64().unwrap_or(0);
        let newest = generation(ours).max(generation(theirs));
        if newest != 0 {
            merged.insert("observedGeneration".to_owned(), newest.into());
        }
    }
    for list in List::ALL {
        let (ours, theirs) = (&ours[list.field()], &theirs[list.field()]);
        // A status without them leaves them unchanged.
        if let Some(ours) = ours.as_array() {
            let value = containers::merge(list, items(theirs), ours, facts.spec);
            merged.insert(list.field().to_owned(), value.into());
        }
    }
    let (our_list, their_list) = (items(&ours["conditions"]), items(&theirs["conditions"]));
    let ended = ends && !waits;
    let mut list = conditions::merge(their_list, our_list, ended, facts);
    let phase = merged.get("phase").cloned().unwrap_or_default();
    if is_terminal(&phase) {
        let phase = phase.as_str().unwrap_or_default();
        conditions::end(&mut list, their_list, phase, facts);
    }
    merged.insert("conditions".to_owned(), list.into());
    Value::Object(merged)
}

fn set(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        fields.remove(name);
    } else {
        fields.insert(name.to_owned(), value.clone());
    }
}

pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn is_terminal(phase: &Value) -> bool {
    phase == "Succeeded" || phase == "Failed"
}
