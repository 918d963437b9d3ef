//! Tables: objects as rows that kubectl prints.

mod columns;

use jiff::Timestamp;
use rubelet_server::{Resource, table};
use serde_json::{Value, json};

use self::columns::own_columns;
use crate::{Kind, meta};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects.
    Object,
    /// meta.k8s.io/v1 Table.
    Table,
}

impl Form {
    /// The first form of an `Accept` header that can be had.
    pub(crate) fn of(accept: &str) -> Self {
        for media in accept.split(',') {
            let mut parts = media.split(';').map(str::trim);
            if parts.next() != Some("application/json") {
                continue;
            }
            let parts: Vec<&str> = parts.collect();
            if !parts.iter().any(|part| part.starts_with("as=")) {
                return Self::Object;
            }
            if parts.contains(&"as=Table") && parts.contains(&"v=v1") {
                return Self::Table;
            }
        }
        Self::Object
    }
}

/// What the node's own server can print, too.
fn shared(kind: &Kind) -> Option<Resource> {
    match kind.storage {
        "pods" => Some(Resource::Pods),
        "events" => Some(Resource::Events),
        _ => None,
    }
}

/// The rows of objects, in the core form for events.
pub(crate) fn table(kind: &Kind, objects: &[&Value], metadata: &Value, now: Timestamp) -> Value {
    let definitions = match shared(kind) {
        Some(resource) => table::definitions(resource),
        None => {
            let columns = own_columns(kind).iter();
            let (usual, wide): (Vec<_>, Vec<_>) = columns.partition(|column| !column.wide);
            let mut all = vec![definition("Name", "name", false)];
            all.extend(
                usual
                    .iter()
                    .map(|column| definition(column.name, "", false)),
            );
            all.push(definition("Age", "", false));
            all.extend(wide.iter().map(|column| definition(column.name, "", true)));
            Value::Array(all)
        }
    };
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            json!({
                "cells": cells(kind, object, now),
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": object["metadata"],
                },
            })
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

fn definition(name: &str, format: &str, wide: bool) -> Value {
    json!({
        "name": name,
        "type": "string",
        "format": format,
        "description": "",
        "priority": u8::from(wide),
    })
}

fn cells(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    if let Some(resource) = shared(kind) {
        return table::cells(resource, object, now);
    }
    let columns = own_columns(kind).iter();
    let (usual, wide): (Vec<_>, Vec<_>) = columns.partition(|column| !column.wide);
    let created = meta::text(object, "/metadata/creationTimestamp")
        .parse()
        .ok();
    let mut cells = vec![meta::name(object).to_owned()];
    cells.extend(usual.iter().map(|column| (column.cell)(object)));
    cells.push(table::age::since(created, now));
    cells.extend(wide.iter().map(|column| (column.cell)(object)));
    cells.into_iter().map(Value::String).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_can_be_had_is_taken() {
        for (accept, form) in [
            ("", Form::Object),
            ("application/json", Form::Object),
            (
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                Form::Table,
            ),
            (
                "application/json;as=Table;g=meta.k8s.io;v=v1beta1, application/json",
                Form::Object,
            ),
            (
                "application/vnd.kubernetes.protobuf, application/json",
                Form::Object,
            ),
        ] {
            assert_eq!(Form::of(accept), form, "{accept}");
        }
    }

    #[test]
    fn a_node_is_a_row_with_its_state() {
        let node = json!({
            "metadata": { "name": "n", "labels": { "node-role.kubernetes.io/worker": "" } },
            "spec": { "unschedulable": true },
            "status": {
                "conditions": [{ "type": "Ready", "status": "True" }],
                "nodeInfo": { "kubeletVersion": "v1.36.2" },
            },
        });
        let table = table(
            Kind::of("nodes").unwrap(),
            &[&node],
            &json!({}),
            Timestamp::UNIX_EPOCH,
        );
        let cells = table["rows"][0]["cells"].as_array().unwrap();
        assert_eq!(
            cells[..4],
            ["n", "Ready,SchedulingDisabled", "worker", "v1.36.2"]
        );
        assert_eq!(table["columnDefinitions"][1]["name"], "Status");
    }
}
