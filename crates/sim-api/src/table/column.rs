//! Columns of tables.

use jiff::Timestamp;
use serde_json::Value;

use super::age;
use crate::meta;

/// Input of a row's cells.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(super) fn text(self, place: &str) -> &'a str {
        meta::text(self.object, place)
    }

    /// The text, or `<none>`.
    pub(super) fn or_none(self, place: &str) -> Value {
        or(self.text(place), "<none>")
    }

    /// Time since the timestamp in the field.
    pub(super) fn since(self, place: &str) -> String {
        age::since(self.text(place).parse().ok(), self.now)
    }

    pub(super) fn size(self, place: &str) -> usize {
        match self.object.pointer(place) {
            Some(Value::Object(fields)) => fields.len(),
            Some(Value::Array(entries)) => entries.len(),
            _ => 0,
        }
    }

    pub(super) fn flag(self, place: &str, usual: bool) -> Value {
        let found = self.object.pointer(place).and_then(Value::as_bool);
        found.unwrap_or(usual).into()
    }

    pub(super) fn list(self, place: &str, field: &str) -> String {
        let entries = meta::entries(self.object, place).iter();
        let texts = entries.map(|entry| meta::text(entry, field));
        texts.collect::<Vec<_>>().join(",")
    }
}

pub(super) fn or(text: &str, otherwise: &str) -> Value {
    match text {
        "" => otherwise.into(),
        text => text.into(),
    }
}

/// A column.
pub(super) struct Column {
    pub(super) name: &'static str,
    /// The type of its cells.
    pub(super) kind: &'static str,
    pub(super) format: &'static str,
    pub(super) cell: fn(Row<'_>) -> Value,
    /// For `-o wide` only.
    pub(super) wide: bool,
}

pub(super) const fn column(name: &'static str, cell: fn(Row<'_>) -> Value) -> Column {
    Column {
        name,
        kind: "string",
        format: "",
        cell,
        wide: false,
    }
}

pub(super) const fn wide(name: &'static str, cell: fn(Row<'_>) -> Value) -> Column {
    Column {
        wide: true,
        ..column(name, cell)
    }
}

impl Column {
    pub(super) const fn of(self, kind: &'static str) -> Self {
        Self { kind, ..self }
    }

    pub(super) const fn named(self) -> Self {
        Self {
            format: "name",
            ..self
        }
    }
}

pub(super) const NAME: Column = column("Name", |row| row.text("/metadata/name").into()).named();

pub(super) const AGE: Column = column("Age", |row| row.since("/metadata/creationTimestamp").into());
