//! Nodes.

use serde_json::{Value, json};

use super::Context;
use crate::{clock, meta};

/// The taint of a node that is not ready yet.
pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";

pub(super) fn before_create(object: &mut Value, context: &Context<'_>) {
    meta::fields(object, "spec");
    meta::fields(object, "status");
    if context.config.pod_cidrs && meta::text(object, "/spec/podCIDR").is_empty() {
        let range = free_range(context);
        object["spec"]["podCIDRs"] = json!([range]);
        object["spec"]["podCIDR"] = range.into();
    }
    if !context.config.node_lifecycle {
        return;
    }
    let spec = &mut object["spec"];
    if !spec["taints"].is_array() {
        spec["taints"] = json!([]);
    }
    let taints = spec["taints"]
        .as_array_mut()
        .expect("it was made an array above");
    let is_there = taints
        .iter()
        .any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule");
    if !is_there {
        taints.push(json!({
            "key": NOT_READY, "effect": "NoSchedule", "timeAdded": clock::seconds(context.now),
        }));
    }
}

/// Differences between the stored object and the sent one: allocatable defaults to capacity (upstream:
/// `SetDefaults_NodeStatus`), and an empty list that Go's type does not omit becomes null.
pub(super) fn set_stored_defaults(object: &mut Value) {
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        && status.get("allocatable").is_none_or(Value::is_null)
        && let Some(capacity) = status.get("capacity").filter(|all| !all.is_null()).cloned()
    {
        status.insert("allocatable".to_owned(), capacity);
    }
    let images = object.pointer_mut("/status/images");
    for image in images.and_then(Value::as_array_mut).into_iter().flatten() {
        let has_names = image["names"]
            .as_array()
            .is_some_and(|names| !names.is_empty());
        if !has_names && let Some(fields) = image.as_object_mut() {
            fields.insert("names".to_owned(), Value::Null);
        }
    }
}

fn free_range(context: &Context<'_>) -> String {
    let nodes = context.store.list("nodes", None);
    let taken: Vec<&str> = nodes
        .iter()
        .map(|node| meta::text(node, "/spec/podCIDR"))
        .collect();
    let mut ranges = (0..=255).map(|number| format!("10.244.{number}.0/24"));
    let free = ranges.find(|range| !taken.contains(&range.as_str()));
    free.unwrap_or_default()
}
