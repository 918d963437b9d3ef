//! Values of a document as text.

use jiff::{Timestamp, tz::TimeZone};
use serde_json::Value;

/// The string at a JSON pointer; empty if there is none.
pub(super) fn string<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The array at a JSON pointer; empty if there is none.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The entries of a map of strings (or of other scalars), ordered by key.
pub(super) fn map(object: &Value) -> Vec<(&str, String)> {
    let mut entries: Vec<(&str, String)> = object
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), scalar(value)))
        .collect();
    entries.sort_unstable();
    entries
}

/// A scalar without quotes.
pub(super) fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// A time as kubectl prints it, in UTC; empty if there is none.
pub(super) fn date(time: &str) -> String {
    let parsed = time.parse::<Timestamp>().ok();
    parsed.map_or_else(String::new, |time| {
        time.to_zoned(TimeZone::UTC)
            .strftime("%a, %d %b %Y %H:%M:%S %z")
            .to_string()
    })
}
