//! The difference between two states of a node, as a strategic merge patch of its status.

use serde_json::{Map, Value, json};

use super::object::{Node, NodeCondition};

/// True if anything except the heartbeat times of the conditions differs.
#[must_use]
pub fn has_changed(old: &Node, new: &Node) -> bool {
    let (before, after) = (&old.status, &new.status);
    let same = before.conditions.len() == after.conditions.len()
        && after.conditions.iter().all(|one| {
            before
                .condition(&one.kind)
                .is_some_and(|old| same_but_heartbeat(old, one))
        })
        && before.addresses == after.addresses
        && before.allocatable == after.allocatable
        && before.capacity == after.capacity
        && before.daemon_endpoints == after.daemon_endpoints
        && before.declared_features == after.declared_features
        && before.features == after.features
        && before.images == after.images
        && before.node_info == after.node_info
        && before.runtime_handlers == after.runtime_handlers
        && before.volumes_in_use == after.volumes_in_use
        && old.metadata.labels == new.metadata.labels
        && old.metadata.annotations == new.metadata.annotations;
    !same
}

fn same_but_heartbeat(old: &NodeCondition, new: &NodeCondition) -> bool {
    old.status == new.status
        && old.reason == new.reason
        && old.message == new.message
        && old.last_transition_time == new.last_transition_time
}

/// The patch from `old` to `new`: status, labels and annotations. `None` if they are equal.
#[must_use]
pub fn patch(old: &Node, new: &Node) -> Option<Value> {
    let mut metadata = Map::new();
    for (name, old, new) in [
        ("labels", &old.metadata.labels, &new.metadata.labels),
        (
            "annotations",
            &old.metadata.annotations,
            &new.metadata.annotations,
        ),
    ] {
        if let Some(difference) = difference("", &json!(old), &json!(new)) {
            metadata.insert(name.to_owned(), difference);
        }
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), metadata.into());
    }
    if let Some(status) = difference("status", &json!(old.status), &json!(new.status)) {
        patch.insert("status".to_owned(), status);
    }
    (!patch.is_empty()).then(|| patch.into())
}

/// The merge patch from `old` to `new`; `None` if they are equal.
fn difference(path: &str, old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    match (path, old, new) {
        ("status.conditions", Value::Array(old), Value::Array(new)) => {
            Some(conditions(old, new).into())
        }
        // The API server would merge addresses by their type, of which there may be two.
        ("status.addresses", Value::Array(_), Value::Array(new)) => {
            let mut list = new.clone();
            list.push(json!({ "$patch": "replace" }));
            Some(list.into())
        }
        // In a merge patch, null removes a field.
        (_, Value::Object(old), Value::Object(new)) => {
            let gone = old.keys().filter(|key| !new.contains_key(*key));
            let mut changes: Map<String, Value> =
                gone.map(|key| (key.clone(), Value::Null)).collect();
            for (key, value) in new {
                let below = match path {
                    "" => String::new(),
                    path => format!("{path}.{key}"),
                };
                let change = match old.get(key) {
                    Some(before) => difference(&below, before, value),
                    None => Some(value.clone()),
                };
                if let Some(change) = change {
                    changes.insert(key.clone(), change);
                }
            }
            Some(changes.into())
        }
        _ => Some(new.clone()),
    }
}

/// The entries that differ, each with its type and the fields that changed.
fn conditions(old: &[Value], new: &[Value]) -> Vec<Value> {
    let changes = new.iter().filter_map(|entry| {
        let kind = &entry["type"];
        match old.iter().find(|before| before["type"] == *kind) {
            Some(before) => {
                let mut change = difference("", before, entry)?;
                change["type"] = kind.clone();
                Some(change)
            }
            None => Some(entry.clone()),
        }
    });
    changes.collect()
}
