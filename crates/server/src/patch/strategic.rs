//! Kubernetes' strategic merge patch, for the lists of pods, nodes and services: the entries of
//! some are merged by a key, such as conditions by their type. All other lists are replaced as a
//! whole. Source of the keys: the tags `patchMergeKey` and `patchStrategy` of the API's types.

use serde_json::{Map, Value};

use super::PatchError;

const DIRECTIVE: &str = "$patch";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const RETAIN: &str = "$retainKeys";

/// The object after the change.
pub(super) fn apply(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    merge("", object.clone(), patch)
}

/// The key that identifies the entries of a list.
fn merge_key(path: &str) -> Option<&'static str> {
    match path {
        "metadata.ownerReferences" => Some("uid"),
        "status.conditions" | "status.addresses" => Some("type"),
        "status.podIPs" | "status.hostIPs" | "spec.hostAliases" => Some("ip"),
        "spec.containers"
        | "spec.initContainers"
        | "spec.ephemeralContainers"
        | "spec.volumes"
        | "spec.imagePullSecrets"
        | "spec.schedulingGates"
        | "spec.resourceClaims"
        | "status.resourceClaimStatuses"
        | "secrets" => Some("name"),
        "spec.topologySpreadConstraints" => Some("topologyKey"),
        "spec.ports" => Some("port"),
        below => match below.rsplit_once("[].")? {
            ("spec.containers" | "spec.initContainers" | "spec.ephemeralContainers", list) => {
                match list {
                    "env" => Some("name"),
                    "ports" => Some("containerPort"),
                    "volumeMounts" => Some("mountPath"),
                    "volumeDevices" => Some("devicePath"),
                    _ => None,
                }
            }
            _ => None,
        },
    }
}

/// True for lists of plain values that a patch appends to.
fn adds_up(path: &str) -> bool {
    ["metadata.finalizers", "spec.podCIDRs"].contains(&path)
}

fn merge(path: &str, old: Value, patch: &Value) -> Result<Value, PatchError> {
    match patch {
        Value::Object(changes) => {
            let old = match old {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            merge_object(path, old, changes).map(Value::Object)
        }
        Value::Array(changes) => match merge_key(path) {
            Some(key) => {
                let old = match old {
                    Value::Array(entries) => entries,
                    _ => Vec::new(),
                };
                merge_list(path, key, old, changes).map(Value::Array)
            }
            None if adds_up(path) => {
                let mut entries = match old {
                    Value::Array(entries) => entries,
                    _ => Vec::new(),
                };
                for change in changes {
                    if !entries.contains(change) {
                        entries.push(change.clone());
                    }
                }
                Ok(Value::Array(entries))
            }
            None => Ok(patch.clone()),
        },
        scalar => Ok(scalar.clone()),
    }
}

fn merge_object(
    path: &str,
    mut fields: Map<String, Value>,
    changes: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    match changes.get(DIRECTIVE).map(|directive| directive.as_str()) {
        None | Some(Some("merge")) => {}
        Some(Some("replace")) => fields.clear(),
        Some(Some("delete")) => return Ok(Map::new()),
        Some(_) => return Err(unknown_directive(&changes[DIRECTIVE])),
    }
    if let Some(kept) = changes.get(RETAIN) {
        let kept = list(path, RETAIN, kept)?;
        fields.retain(|key, _| kept.iter().any(|one| one == key));
    }
    for (key, change) in changes {
        // `$setElementOrder` has no effect here.
        if [DIRECTIVE, RETAIN].contains(&key.as_str()) || key.starts_with(ORDER) {
            continue;
        }
        if let Some(name) = key.strip_prefix(DELETE_FROM) {
            let gone = list(path, key, change)?;
            if let Some(Value::Array(entries)) = fields.get_mut(name) {
                entries.retain(|entry| !gone.contains(entry));
            }
            continue;
        }
        if change.is_null() {
            fields.remove(key);
            continue;
        }
        let below = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let old = fields.remove(key).unwrap_or_default();
        fields.insert(key.clone(), merge(&below, old, change)?);
    }
    Ok(fields)
}

fn merge_list(
    path: &str,
    key: &str,
    mut entries: Vec<Value>,
    changes: &[Value],
) -> Result<Vec<Value>, PatchError> {
    let directive = |change: &Value| change.get(DIRECTIVE).cloned();
    if changes
        .iter()
        .any(|change| directive(change).is_some_and(|found| found == "replace"))
    {
        entries.clear();
    }
    for change in changes {
        let Value::Object(fields) = change else {
            return Err(PatchError::Malformed(format!(
                "{path}: every entry must be an object"
            )));
        };
        let wanted = directive(change);
        if wanted.as_ref().is_some_and(|found| found == "replace") {
            // An entry that contains only the directive is not kept.
            if fields.len() > 1 {
                entries.push(Value::Object(merge_object(path, Map::new(), fields)?));
            }
            continue;
        }
        let Some(name) = fields.get(key).filter(|name| !name.is_null()) else {
            return Err(PatchError::Malformed(format!(
                "{path}: an entry has no {key:?}, which identifies entries"
            )));
        };
        let found = entries.iter().position(|entry| entry[key] == *name);
        match (wanted, found) {
            (Some(Value::String(word)), found) if word == "delete" => {
                if let Some(index) = found {
                    entries.remove(index);
                }
            }
            (Some(Value::String(word)), _) if word != "merge" => {
                return Err(unknown_directive(&Value::String(word)));
            }
            (Some(other), _) if !other.is_string() => return Err(unknown_directive(&other)),
            (_, Some(index)) => {
                let old = entries[index].take();
                entries[index] = merge(&format!("{path}[]"), old, change)?;
            }
            (_, None) => {
                entries.push(merge(&format!("{path}[]"), Value::Null, change)?);
            }
        }
    }
    Ok(entries)
}

fn list<'a>(path: &str, key: &str, value: &'a Value) -> Result<&'a Vec<Value>, PatchError> {
    value
        .as_array()
        .ok_or_else(|| PatchError::Malformed(format!("{path}: {key} must be a list")))
}

fn unknown_directive(directive: &Value) -> PatchError {
    PatchError::Malformed(format!(
        "{DIRECTIVE}: {directive} is not merge, replace or delete"
    ))
}

#[cfg(test)]
mod tests;
