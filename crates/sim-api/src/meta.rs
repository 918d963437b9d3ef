//! Accessors of `metadata` of JSON objects.

use serde_json::{Map, Value};

/// The string at a JSON pointer; empty if missing.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The whole number at a JSON pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// Whether the value at a JSON pointer is `true`.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer) == Some(&Value::Bool(true))
}

/// The entries of the array at a JSON pointer.
pub(crate) fn entries<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `metadata.namespace`; empty if there is none.
pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

/// `metadata.resourceVersion` as a number; 0 if missing.
pub(crate) fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion")
        .parse()
        .unwrap_or(0)
}

/// Whether `metadata.deletionTimestamp` is set.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// The fields of `object[key]`, which is created if missing.
pub(crate) fn fields<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let place = &mut object[key];
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    place.as_object_mut().expect("it was made an object above")
}

/// Sets `fields[key]` if it is missing or null.
pub(crate) fn default(object: &mut Value, key: &str, value: impl Into<Value>) {
    if object.get(key).is_none_or(Value::is_null) {
        object[key] = value.into();
    }
}

/// Copies `from[key]` to `to[key]`, and removes it there if it is missing.
pub(crate) fn copy_field(to: &mut Value, from: &Value, key: &str) {
    match from.get(key) {
        Some(value) => to[key] = value.clone(),
        None => {
            if let Some(fields) = to.as_object_mut() {
                fields.remove(key);
            }
        }
    }
}

/// Removes null fields recursively, as decoding into typed objects does.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(entries) => entries.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
