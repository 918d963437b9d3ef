//! JSON merge patch that records the origin of each value.
//!
//! Source of the rule: RFC 7396. Null removes, mappings merge by key, everything else replaces.

use crate::origins::{Origin, Origins};
use rubelet_yaml::join_path;
use serde_json::{Map, Value};

/// Merges `patch` into `target`, which is at `path`. `origin` returns the origin of a field of the
/// patch.
pub(crate) fn merge(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    path: &str,
    origins: &mut Origins,
    origin: &dyn Fn(&str) -> Origin,
) {
    for (key, value) in patch {
        let path = join_path(path, key);
        match value {
            Value::Null => {
                target.remove(key);
                origins.clear(&path);
            }
            Value::Object(patch) => {
                if !target.get(key).is_some_and(Value::is_object) {
                    target.insert(key.clone(), Value::Object(Map::new()));
                    origins.set(&path, origin(&path));
                }
                if let Some(Value::Object(inner)) = target.get_mut(key) {
                    if inner.is_empty() && !patch.is_empty() {
                        origins.clear(&path);
                    }
                    merge(inner, patch, &path, origins, origin);
                    if inner.is_empty() {
                        origins.set(&path, origin(&path));
                    }
                }
            }
            scalar_or_list => {
                target.insert(key.clone(), scalar_or_list.clone());
                origins.set(&path, origin(&path));
            }
        }
    }
}

/// Sets one value, and creates missing parent mappings.
pub(crate) fn assign(target: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            target.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = target
                .entry(first)
                .or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                assign(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
