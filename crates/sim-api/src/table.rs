//! Tables: objects as rows that kubectl prints. Source of columns and cells: upstream's
//! `printers/internalversion`.

mod age;
mod columns;
mod event;
mod node;
mod pod;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::columns::{Column, Row, columns};
use crate::{Kind, query::Query};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects.
    Object,
    /// meta.k8s.io/v1 Table.
    Table(Include),
}

/// What a row of a table carries beside its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Form {
    /// The first form of an `Accept` header that can be had.
    pub(crate) fn of(accept: &str, query: &Query) -> Self {
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
                return Self::Table(match query.text("includeObject") {
                    "None" => Include::Nothing,
                    "Object" => Include::Object,
                    _ => Include::Metadata,
                });
            }
        }
        Self::Object
    }
}

/// The rows of objects, in the core form for events.
pub(crate) fn table(
    kind: &Kind,
    objects: &[&Value],
    metadata: &Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let columns = columns(kind);
    let rows = objects.iter().map(|object| {
        let row = Row { object, now };
        let cells: Vec<Value> = columns.iter().map(|column| (column.cell)(row)).collect();
        let object = match include {
            Include::Nothing => Value::Null,
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"],
            }),
            Include::Object => Value::clone(object),
        };
        json!({ "cells": cells, "object": object })
    });
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns.iter().map(definition).collect::<Value>(),
        "rows": rows.collect::<Value>(),
    })
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind,
        "format": column.format,
        "description": "",
        "priority": u8::from(column.wide),
    })
}

#[cfg(test)]
mod tests;
