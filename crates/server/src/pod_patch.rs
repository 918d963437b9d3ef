//! Changes to the two parts of a pod that clients may write: conditions that are not the agent's
//! own, and ephemeral containers. Pure: a node applies a change to the pod's current state.

mod conditions;
mod difference;
mod ephemeral;
#[cfg(test)]
mod tests;

use rubelet_http_core::field_error::FieldError;
use serde_json::Value;

pub use self::conditions::{ConditionChanges, PodCondition, is_agent_condition};
use crate::{
    ActionError,
    patch::{Patch, PatchError},
};

/// A change to one pod, as a client sent it.
#[derive(Debug, Clone)]
pub struct PodPatch {
    patch: Patch,
}

impl PodPatch {
    /// Reads the body of a PATCH with that media type.
    ///
    /// # Errors
    /// The media type is not a patch type, or the body is not a valid patch of it.
    pub fn read(media_type: &str, body: &[u8]) -> Result<Self, ActionError> {
        let patch = Patch::read(media_type, body).ok_or_else(|| {
            ActionError::BadRequest(format!("{media_type:?} is no kind of patch"))
        })?;
        Ok(Self { patch: patch? })
    }

    /// Reads the body of a PUT: the whole pod.
    ///
    /// # Errors
    /// The body is not a JSON object.
    pub fn replacement(body: &[u8]) -> Result<Self, ActionError> {
        let patch = Patch::replacement(body)?;
        Ok(Self { patch })
    }

    /// The changes to those conditions of a v1 Pod that are not the agent's own.
    ///
    /// # Errors
    /// It does not fit the pod, or changes anything else.
    pub fn conditions(&self, pod: &Value) -> Result<ConditionChanges, ActionError> {
        let patched = self.patched(pod)?;
        if let Some(field) = difference::first(pod, &patched, &|path| {
            path == "status.conditions" || self.is_bystander(path)
        }) {
            let rule = "only status.conditions of types that are not the agent's own can be set";
            return Err(FieldError::forbidden(field, rule).into());
        }
        conditions::changes(pod, &patched)
    }

    /// The ephemeral containers that the change adds to a v1 Pod, as they were sent.
    ///
    /// # Errors
    /// It does not fit the pod, changes or removes ephemeral containers that are there, or changes
    /// anything else.
    pub fn ephemeral_containers(&self, pod: &Value) -> Result<Vec<Value>, ActionError> {
        let patched = self.patched(pod)?;
        if let Some(field) = difference::first(pod, &patched, &|path| {
            path == "spec.ephemeralContainers"
                || self.is_bystander(path)
                || (self.is_replacement() && path == "status")
        }) {
            let rule = "only spec.ephemeralContainers can be added to";
            return Err(FieldError::forbidden(field, rule).into());
        }
        ephemeral::added(pod, &patched)
    }

    /// The pod after the change, if it is about this pod in this version.
    fn patched(&self, pod: &Value) -> Result<Value, ActionError> {
        let patched = self.patch.apply(pod)?;
        let (old, new) = (&pod["metadata"], &patched["metadata"]);
        let name = old["name"].as_str().unwrap_or_default();
        let refused = |what: String| {
            ActionError::Conflict(format!(
                "Operation cannot be fulfilled on pods {name:?}: {what}"
            ))
        };
        if !new["uid"].is_null() && new["uid"] != old["uid"] {
            return Err(refused(format!(
                "Precondition failed: UID in precondition: {}, UID in object meta: {}",
                plain(&new["uid"]),
                plain(&old["uid"])
            )));
        }
        let version = &new["resourceVersion"];
        if !matches!(version, Value::Null) && version != "" && *version != old["resourceVersion"] {
            return Err(refused(
                "the object has been modified; please apply your changes to the latest version \
                 and try again"
                    .to_owned(),
            ));
        }
        Ok(patched)
    }

    /// Fields that clients send along without meaning to change them.
    fn is_bystander(&self, path: &str) -> bool {
        match path {
            "metadata.resourceVersion" | "metadata.managedFields" => true,
            "metadata.uid" | "apiVersion" | "kind" => self.is_replacement(),
            _ => false,
        }
    }

    fn is_replacement(&self) -> bool {
        matches!(self.patch, Patch::Replace(_))
    }
}

impl From<PatchError> for ActionError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(message) => Self::BadRequest(message),
            PatchError::Unfit(message) => Self::Invalid(vec![FieldError {
                field: "patch".to_owned(),
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {message}"),
            }]),
        }
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The entries of the list at a JSON pointer.
fn entries<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
