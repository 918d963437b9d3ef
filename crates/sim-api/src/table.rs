//! Tables for kubectl. Source of columns and cells: upstream's `printers/internalversion`.

mod age;
mod column;
mod columns;
mod event;
mod node;
mod pod;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::{
    column::{Column, Row},
    columns::columns,
};
use crate::{Kind, negotiation::Include};

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
