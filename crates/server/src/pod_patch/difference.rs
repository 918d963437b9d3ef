//! Differences between two objects.

use serde_json::Value;

/// The path of the first field in which two objects differ and which is not `ignored`. Values that
/// Go's clients omit when they serialize an object (`""`, `0`, `false`, null, empty lists and
/// objects) count as absent.
pub(super) fn first(old: &Value, new: &Value, ignored: &dyn Fn(&str) -> bool) -> Option<String> {
    below("", old, new, ignored)
}

fn below(path: &str, old: &Value, new: &Value, ignored: &dyn Fn(&str) -> bool) -> Option<String> {
    if old == new || ignored(path) || (is_nothing(old) && is_nothing(new)) {
        return None;
    }
    let here = || Some(if path.is_empty() { "." } else { path }.to_owned());
    match (old, new) {
        (Value::Object(_) | Value::Null, Value::Object(_) | Value::Null) => {
            let (a, b) = (old.as_object(), new.as_object());
            let keys = a.into_iter().chain(b).flat_map(|fields| fields.keys());
            let mut keys: Vec<&String> = keys.collect();
            keys.sort_unstable();
            keys.dedup();
            keys.into_iter().find_map(|key| {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                below(&path, &old[key.as_str()], &new[key.as_str()], ignored)
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(index, (a, b))| below(&format!("{path}[{index}]"), a, b, ignored))
        }
        _ => here(),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let nothing = |_: &str| false;
        for (old, new, field) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), Some("a.b")),
            (json!({"a": {"b": 1}}), json!({}), Some("a.b")),
            (json!({}), json!({"a": {"b": [1]}}), Some("a.b")),
            (
                json!({"a": [{"b": 1}]}),
                json!({"a": [{"b": 2}]}),
                Some("a[0].b"),
            ),
            (json!({"a": [1]}), json!({"a": [1, 2]}), Some("a")),
            (json!({"a": 1}), json!({"a": {}}), Some("a")),
            (
                json!({"a": "", "b": {"c": {}}, "d": false, "e": null, "f": 0}),
                json!({}),
                None,
            ),
            (json!({}), json!({"a": {"b": []}, "c": null}), None),
            (json!({"a": true}), json!({}), Some("a")),
            (json!({"a": 1}), json!(1), Some(".")),
        ] {
            assert_eq!(first(&old, &new, &nothing).as_deref(), field, "{old} {new}");
        }
        let ignored = |path: &str| path == "a.b";
        let old = json!({"a": {"b": 1, "c": 1}});
        assert_eq!(first(&old, &json!({"a": {"c": 1}}), &ignored), None);
    }
}
