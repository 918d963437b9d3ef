//! Columns of events.

use serde_json::Value;

use super::column::{Column, NAME, Row, column, wide};
use crate::meta;

pub(super) const COLUMNS: &[Column] = &[
    column("Last Seen", |row| last_seen(row).into()),
    column("Type", |row| row.text("/type").into()),
    column("Reason", |row| row.text("/reason").into()),
    column("Object", |row| object(row).into()),
    wide("Subobject", |row| {
        row.text("/involvedObject/fieldPath").into()
    }),
    wide("Source", |row| source(row).into()),
    column("Message", |row| row.text("/message").trim().into()),
    wide("First Seen", |row| first_seen(row).into()),
    wide("Count", |row| count(row.object).into()),
    Column { wide: true, ..NAME },
];

fn first_seen(row: Row<'_>) -> String {
    match row.text("/firstTimestamp") {
        "" => row.since("/eventTime"),
        _ => row.since("/firstTimestamp"),
    }
}

fn last_seen(row: Row<'_>) -> String {
    if row.object.get("series").is_some_and(Value::is_object) {
        return row.since("/series/lastObservedTime");
    }
    match row.text("/lastTimestamp") {
        "" => first_seen(row),
        _ => row.since("/lastTimestamp"),
    }
}

fn count(event: &Value) -> i64 {
    let of_series = meta::number(event, "/series/count");
    let single = || meta::number(event, "/count").filter(|count| *count != 0);
    of_series.or_else(single).unwrap_or(1)
}

fn object(row: Row<'_>) -> String {
    let kind = row.text("/involvedObject/kind").to_lowercase();
    match row.text("/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(row: Row<'_>) -> String {
    let first = |older: &str, newer: &str| match row.text(older) {
        "" => row.text(newer).to_owned(),
        text => text.to_owned(),
    };
    let component = first("/source/component", "/reportingComponent");
    match first("/source/host", "/reportingInstance").as_str() {
        "" => component,
        instance => format!("{component}, {instance}"),
    }
}
