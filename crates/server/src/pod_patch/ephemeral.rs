//! Ephemeral containers: they can be added to a pod, and then stay as they are.

use rubelet_http_core::field_error::FieldError;
use serde_json::Value;

use super::{difference, entries};
use crate::ActionError;

const LIST: &str = "spec.ephemeralContainers";

/// The ephemeral containers that were added to a pod.
pub(super) fn added(old: &Value, new: &Value) -> Result<Vec<Value>, ActionError> {
    if let Some(other) = new.pointer("/spec/ephemeralContainers")
        && !other.is_array()
        && !other.is_null()
    {
        return Err(FieldError::invalid(LIST, other, "must be a list").into());
    }
    let before = entries(old, "/spec/ephemeralContainers");
    let after = entries(new, "/spec/ephemeralContainers");
    let mut errors = Vec::new();
    for known in before {
        let rule = match after.iter().find(|one| one["name"] == known["name"]) {
            None => "removed",
            Some(one) if difference::first(known, one, &|_| false).is_some() => "changed",
            Some(_) => continue,
        };
        let name = known["name"].as_str().unwrap_or_default();
        let rule = format!("existing ephemeral containers {name:?} may not be {rule}");
        errors.push(FieldError::forbidden(LIST, &rule));
    }
    let mut added: Vec<Value> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (index, one) in after.iter().enumerate() {
        let path = format!("{LIST}[{index}]");
        match one["name"].as_str() {
            _ if !one.is_object() => {
                errors.push(FieldError::invalid(path, one, "must be an object"));
            }
            None | Some("") => errors.push(FieldError::required(format!("{path}.name"))),
            Some(name) if seen.contains(&name) => errors.push(FieldError {
                field: format!("{path}.name"),
                reason: "FieldValueDuplicate",
                message: format!("Duplicate value: {name:?}"),
            }),
            Some(name) => {
                seen.push(name);
                if before.iter().all(|known| known["name"] != one["name"]) {
                    added.push(one.clone());
                }
            }
        }
    }
    if errors.is_empty() {
        Ok(added)
    } else {
        Err(ActionError::Invalid(errors))
    }
}
