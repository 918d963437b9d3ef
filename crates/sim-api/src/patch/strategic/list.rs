//! Lists in a strategic merge patch: merge by key or as sets, and order.

use serde_json::Value;

use super::{DIRECTIVE, Fields, malformed, new_value};
use crate::patch::{
    PatchError,
    merge_keys::{self, Field, Schema},
};

/// How the entries of a list are identified.
#[derive(Clone, Copy)]
enum Identity {
    /// By their value.
    Value,
    /// By a field.
    Key(&'static str),
}

impl Identity {
    fn same(self, one: &Value, other: &Value) -> bool {
        match self {
            Self::Value => one == other,
            Self::Key(key) => one.get(key).is_some() && one.get(key) == other.get(key),
        }
    }

    fn place(self, entry: &Value, entries: &[Value]) -> Option<usize> {
        entries.iter().position(|other| self.same(entry, other))
    }
}

/// Applies a patch to a list. Lists that are not in the schema are replaced.
pub(super) fn merge(
    old: Vec<Value>,
    patch: Vec<Value>,
    field: Option<&'static Field>,
) -> Result<Vec<Value>, PatchError> {
    let Some(field) = field else {
        return Ok(patch);
    };
    let of_one_form = |form: fn(&Value) -> bool| old.iter().chain(&patch).all(form);
    match field {
        Field::Keyed(key, schema) => {
            if !of_one_form(Value::is_object) {
                return Err(mixed());
            }
            merge_keyed(old, patch, key, schema)
        }
        Field::Set => {
            if !of_one_form(|one| !one.is_object() && !one.is_array()) {
                return Err(mixed());
            }
            let mut merged: Vec<Value> = Vec::new();
            for one in old.iter().chain(&patch) {
                if !merged.contains(one) {
                    merged.push(one.clone());
                }
            }
            Ok(sorted(merged, &patch, &old, Identity::Value))
        }
        Field::Object(_) => Ok(patch),
    }
}

fn mixed() -> PatchError {
    PatchError::Unknown("list element types are not identical".to_owned())
}

fn no_key(key: &str, entry: &Value) -> PatchError {
    PatchError::Unknown(format!(
        "map: {entry} does not contain declared merge key: {key}"
    ))
}

fn merge_keyed(
    mut old: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
    schema: Schema,
) -> Result<Vec<Value>, PatchError> {
    let identity = Identity::Key(key);
    let mut changes = Vec::new();
    let mut replaces = false;
    for entry in patch {
        match entry.get(DIRECTIVE) {
            None => changes.push(entry),
            Some(word) if word == "delete" => {
                if entry.get(key).is_none() {
                    return Err(no_key(key, &entry));
                }
                old.retain(|other| !identity.same(&entry, other));
            }
            Some(word) if word == "replace" => replaces = true,
            Some(word) => {
                let message = match word == "merge" {
                    true => "merging lists cannot yet be specified in the patch".to_owned(),
                    false => format!("unknown patch type: {word} in map"),
                };
                return Err(PatchError::Unknown(message));
            }
        }
    }
    if replaces {
        return Ok(changes);
    }
    let order = old.clone();
    for change in &changes {
        if change.get(key).is_none() {
            return Err(no_key(key, change));
        }
        match identity.place(change, &old) {
            Some(index) => {
                let merged =
                    super::merge(fields(old[index].take()), fields(change.clone()), schema)?;
                old[index] = Value::Object(merged);
            }
            None => old.push(change.clone()),
        }
    }
    Ok(sorted(old, &changes, &order, identity))
}

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

/// Merges a list and sorts it in the order of the patch, as far as that names the entries.
pub(super) fn in_order(
    old: &mut Fields,
    patch: &mut Fields,
    schema: Schema,
    key: &str,
    order: &Value,
) -> Result<(), PatchError> {
    let bad = || malformed("invalid patch format of setElementOrder list");
    let order = order.as_array().ok_or_else(bad)?;
    let field = merge_keys::field(schema, key);
    let identity = match field {
        Some(Field::Keyed(key, _)) => Identity::Key(key),
        _ => Identity::Value,
    };
    let list = |value: Option<&Value>| match value {
        None => Ok(None),
        Some(Value::Array(entries)) => Ok(Some(entries.clone())),
        Some(_) => Err(bad()),
    };
    let before = list(old.get(key))?;
    let change = list(patch.get(key))?;
    if let Some(change) = &change {
        follows(change, order, identity)?;
    }
    let merged = match (before.clone(), change) {
        (None, None) => return Ok(()),
        (Some(before), None) => before,
        (None, Some(change)) => change.into_iter().filter_map(new_value).collect(),
        (Some(before), Some(change)) => merge(before, change, field)?,
    };
    patch.remove(key);
    let before = before.unwrap_or_default();
    let merged = sorted(merged, order, &before, identity);
    old.insert(key.to_owned(), Value::Array(merged));
    Ok(())
}

/// Refuses a list whose entries are not in the requested order.
fn follows(change: &[Value], order: &[Value], identity: Identity) -> Result<(), PatchError> {
    let mut places = order.iter();
    let is_kept = |entry: &&Value| entry.get(DIRECTIVE).is_none();
    let in_order = change
        .iter()
        .filter(is_kept)
        .all(|entry| places.any(|place| identity.same(entry, place)));
    if in_order || order.is_empty() {
        return Ok(());
    }
    let message = "The order in patch list doesn't match $setElementOrder list";
    Err(PatchError::Unknown(message.to_owned()))
}

/// Entries in the order of the patch and, for entries that it does not name, of the object; if neither
/// decides, the patch's entries come first.
fn sorted(entries: Vec<Value>, patch: &[Value], old: &[Value], identity: Identity) -> Vec<Value> {
    let place = |entry: &Value, order: &[Value]| identity.place(entry, order);
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = entries
        .into_iter()
        .partition(|entry| place(entry, patch).is_some());
    named.sort_by_key(|entry| place(entry, patch));
    others.sort_by_key(|entry| place(entry, old));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return all,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(one)) => {
                let places = place(other, old).zip(place(one, old));
                places.is_some_and(|(other, one)| other < one)
            }
        };
        all.extend(if other_first {
            others.next()
        } else {
            named.next()
        });
    }
}
