//! Equality of JSON as the API server means it: what is empty is the same as what is not there.

use serde_json::Value;

/// True if the API server would take both for the same value. It leaves out empty texts, lists and
/// objects, and writes some of its empty times as `null`.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let known = |(key, value): (&String, &Value)| {
                other
                    .get(key)
                    .map_or_else(|| is_empty(value), |other| same(value, other))
            };
            let mut new = other.iter().filter(|(key, _)| !one.contains_key(*key));
            one.iter().all(known) && new.all(|(_, value)| is_empty(value))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => one == other || is_empty(one) && is_empty(other),
    }
}

/// True for a value that the API server would leave out.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_empty_is_the_same_as_what_is_not_there() {
        for (one, other, expected) in [
            (json!({"a": ""}), json!({}), true),
            (json!({"at": null, "b": 1}), json!({"b": 1}), true),
            (json!({"lastState": {}}), json!({}), true),
            (
                json!({"state": {"waiting": {"reason": ""}}}),
                json!({"state": {}}),
                true,
            ),
            (json!([{"a": 1}]), json!([{"a": 1, "b": []}]), true),
            (json!({"exitCode": 0}), json!({}), false),
            (json!({"ready": false}), json!({}), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!([]), json!([{}]), false),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), false),
        ] {
            assert_eq!(same(&one, &other), expected, "{one} {other}");
            assert_eq!(same(&other, &one), expected, "{other} {one}");
        }
    }
}
