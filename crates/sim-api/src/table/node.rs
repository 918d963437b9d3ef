//! Columns of nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, column, or, wide};
use crate::meta;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    column("Status", |row| status(row.object).into()),
    column("Roles", |row| or(&roles(row.object), "<none>")),
    AGE,
    column("Version", |row| {
        row.text("/status/nodeInfo/kubeletVersion").into()
    }),
    wide("Internal-IP", |row| address(row, "InternalIP")),
    wide("External-IP", |row| address(row, "ExternalIP")),
    wide("OS-Image", |row| {
        or(row.text("/status/nodeInfo/osImage"), "<unknown>")
    }),
    wide("Kernel-Version", |row| {
        let version = or(row.text("/status/nodeInfo/kernelVersion"), "<unknown>");
        match row.text("/status/nodeInfo/architecture") {
            "" => version,
            architecture => format!("{} ({architecture})", meta::text(&version, "")).into(),
        }
    }),
    wide("Container-Runtime", |row| {
        or(
            row.text("/status/nodeInfo/containerRuntimeVersion"),
            "<unknown>",
        )
    }),
];

fn address(row: Row<'_>, kind: &str) -> Value {
    let mut addresses = meta::entries(row.object, "/status/addresses").iter();
    let found = addresses.find(|address| address["type"] == kind);
    or(
        found.map_or("", |found| meta::text(found, "/address")),
        "<none>",
    )
}

fn status(node: &Value) -> String {
    let mut conditions = meta::entries(node, "/status/conditions").iter().rev();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    let status = match ready.map(|ready| meta::text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match meta::flag(node, "/spec/unschedulable") {
        true => format!("{status},SchedulingDisabled"),
        false => status.to_owned(),
    }
}

fn roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let roles = labels.into_iter().flatten().filter_map(|(key, value)| {
        match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        }
    });
    let roles: BTreeSet<&str> = roles.filter(|role| !role.is_empty()).collect();
    Vec::from_iter(roles).join(",")
}
