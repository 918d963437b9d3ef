//! Strategic merge patch: merges objects by field, some lists by entry, and supports directives.

mod list;

use serde_json::{Map, Value};

use super::{
    PatchError, decoded,
    merge_keys::{self, Field, Schema},
};
use crate::Kind;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

type Fields = Map<String, Value>;

/// Applies the patch. Directives at other places are removed afterwards, as by decoding into a type
/// without such a field.
pub(super) fn apply(kind: &Kind, object: &Value, body: &[u8]) -> Result<Value, PatchError> {
    let (Value::Object(old), Value::Object(patch)) = (object.clone(), decoded(body)?) else {
        return Err(malformed("invalid JSON document"));
    };
    let mut merged = Value::Object(merge(old, patch, merge_keys::of_kind(kind))?);
    drop_directives(&mut merged);
    Ok(merged)
}

fn malformed(message: &str) -> PatchError {
    PatchError::Malformed(message.to_owned())
}

/// Merges a patch into an object.
fn merge(mut old: Fields, mut patch: Fields, schema: Schema) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => Err(PatchError::Unknown(format!(
                "unknown patch type: {directive} in map"
            ))),
        };
    }
    if let Some(kept) = patch.remove(RETAIN_KEYS) {
        retain(&mut old, &patch, &kept)?;
    }
    for (key, order) in drain(&mut patch, ORDER) {
        list::in_order(&mut old, &mut patch, schema, &key, &order)?;
    }
    for (key, gone) in drain(&mut patch, DELETE_FROM) {
        if let Some(Value::Array(entries)) = old.get_mut(&key) {
            let gone = gone
                .as_array()
                .ok_or_else(|| PatchError::Unknown(format!("{DELETE_FROM}{key} must be a list")))?;
            entries.retain(|entry| !gone.contains(entry));
        }
    }
    for (key, change) in patch {
        if change.is_null() {
            old.remove(&key);
            continue;
        }
        let below = merge_keys::field(schema, &key);
        let merged = match (old.remove(&key), change) {
            (Some(Value::Object(old)), Value::Object(change)) => {
                let schema = match below {
                    Some(Field::Object(schema)) => *schema,
                    _ => &[],
                };
                Some(Value::Object(merge(old, change, schema)?))
            }
            (Some(Value::Array(old)), Value::Array(change)) => {
                Some(Value::Array(list::merge(old, change, below)?))
            }
            (_, change) => new_value(change),
        };
        if let Some(merged) = merged {
            old.insert(key, merged);
        }
    }
    Ok(old)
}

/// Removes the fields whose names begin with a prefix. Returns them by the rest of their names.
fn drain(patch: &mut Fields, prefix: &str) -> Vec<(String, Value)> {
    let keys: Vec<String> = patch
        .keys()
        .filter_map(|key| key.strip_prefix(prefix).map(str::to_owned))
        .collect();
    keys.into_iter()
        .filter_map(|key| {
            let value = patch.remove(&format!("{prefix}{key}"))?;
            Some((key, value))
        })
        .collect()
}

/// Removes fields that `kept` does not name. It must name all fields that the patch sets.
fn retain(old: &mut Fields, patch: &Fields, kept: &Value) -> Result<(), PatchError> {
    let bad = || malformed("invalid patch format of retainKeys");
    let kept = kept.as_array().ok_or_else(bad)?;
    let is_kept = |key: &str| kept.iter().any(|one| one == key);
    let is_named = |(key, value): (&String, &Value)| {
        value.is_null() || key.starts_with(DELETE_FROM) || key.starts_with(ORDER) || is_kept(key)
    };
    if !patch.iter().all(is_named) {
        return Err(bad());
    }
    old.retain(|key, _| is_kept(key));
    Ok(())
}

/// A value of the patch for a missing field: without nulls, and without objects that contain a
/// directive. `None` for an object that contains one itself.
fn new_value(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => return None,
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            let kept = fields.filter_map(|(key, value)| Some((key, new_value(value)?)));
            Value::Object(kept.collect())
        }
        Value::Array(entries) => entries.into_iter().filter_map(new_value).collect(),
        other => other,
    })
}

/// Removes directives, which are not fields of any type.
fn drop_directives(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| {
                ![DIRECTIVE, RETAIN_KEYS].contains(&key.as_str())
                    && !key.starts_with(ORDER)
                    && !key.starts_with(DELETE_FROM)
            });
            fields.values_mut().for_each(drop_directives);
        }
        Value::Array(entries) => entries.iter_mut().for_each(drop_directives),
        _ => {}
    }
}
