//! The columns of `get`: one row of cells per object, as kubectl prints them.
//!
//! Pure: `now` is an argument, objects are JSON. The Table answers and the command line share it.
//! Source of the rules: upstream's printers (pkg/printers/internalversion).

pub mod age;
mod event;
mod lifecycle;
mod manifest;
mod pod;

use jiff::Timestamp;
use rubelet_http_core::resource::Resource;
use serde_json::{Value, json};

pub use self::{
    event::{EventTimes, event_times},
    pod::NEXT_TRY_ANNOTATION,
};

/// One column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// The heading in the API; printed in capitals.
    pub name: &'static str,
    /// `name` where the cell is the object's name, otherwise empty.
    pub format: &'static str,
    /// True for columns of `-o wide` only.
    pub wide: bool,
    /// The meaning of the cells.
    pub description: &'static str,
}

const fn column(name: &'static str, description: &'static str) -> Column {
    Column {
        name,
        format: "",
        wide: false,
        description,
    }
}

impl Column {
    const fn wide(self) -> Self {
        Self { wide: true, ..self }
    }

    const fn named(self) -> Self {
        Self {
            format: "name",
            ..self
        }
    }
}

/// All columns of a resource, wide ones included.
#[must_use]
pub fn columns(resource: Resource) -> &'static [Column] {
    match resource {
        Resource::Pods => pod::COLUMNS,
        Resource::Events => event::COLUMNS,
        Resource::Manifests => manifest::COLUMNS,
        Resource::LifecycleEvents => lifecycle::COLUMNS,
    }
}

/// The cells of an object, one for each of [`columns`]: strings and whole numbers.
#[must_use]
pub fn cells(resource: Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    match resource {
        Resource::Pods => pod::cells(object, now),
        Resource::Events => event::cells(object, now),
        Resource::Manifests => manifest::cells(object, now),
        Resource::LifecycleEvents => lifecycle::cells(object),
    }
}

/// `columnDefinitions` of a meta.k8s.io/v1 Table.
#[must_use]
pub fn definitions(resource: Resource) -> Value {
    let definition = |column: &Column| {
        json!({
            "name": column.name,
            "type": "string",
            "format": column.format,
            "description": column.description,
            "priority": u8::from(column.wide),
        })
    };
    columns(resource).iter().map(definition).collect()
}

/// The string at a JSON pointer; empty if missing.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The time at a JSON pointer.
fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    text(object, pointer).parse().ok()
}

/// The entries of the array at a JSON pointer.
fn entries<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `<none>` for nothing.
fn or_none(text: &str) -> Value {
    if text.is_empty() {
        "<none>".into()
    } else {
        text.into()
    }
}
