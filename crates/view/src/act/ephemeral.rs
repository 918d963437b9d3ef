//! Adding ephemeral containers to a pod that runs.

use rubelet_api::{
    parse::{self, FieldErrorKind, ephemeral_container},
    pod::Pod,
};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_server::{ActionError, FieldError, PodPatch, PodRef};
use serde_json::Value;

use super::{json, not_kept};
use crate::LocalView;

/// Maximum number of ephemeral containers per pod: they can't be removed from it.
const MOST: usize = 64;

pub(super) async fn add(
    view: &LocalView,
    pod: &PodRef,
    entry: &PodEntry,
    patch: &PodPatch,
) -> Result<(), ActionError> {
    let name = &entry.pod.name.name;
    if entry.deletion.is_some() || entry.status.phase.is_terminal() {
        let message = format!("pod {name:?} has ended or is being removed; nothing starts in it");
        return Err(ActionError::Conflict(message));
    }
    let added = view.parts.intents.update(&entry.pod.uid, |intents| {
        // Computed under the lock of the intents, so that no other request can interfere.
        let new = patch.ephemeral_containers(&json(view, pod, entry)?)?;
        if intents.ephemeral.len() + new.len() > MOST {
            return Err(ActionError::Conflict(format!(
                "the pod would have more than {MOST} ephemeral containers"
            )));
        }
        let new = complete(&entry.pod, &intents.ephemeral, &new)?;
        intents.ephemeral.extend(new);
        Ok(())
    });
    added.await.map_err(|error| not_kept(&error))?
}

/// The new containers with their defaults, each validated against all containers before it.
fn complete(pod: &Pod, old: &[Box<str>], new: &[Value]) -> Result<Vec<Box<str>>, ActionError> {
    let mut all = Vec::new();
    let mut with_all = pod.with_ephemeral(Vec::new());
    let mut complete = Vec::new();
    for text in old {
        // One that a manifest change has made invalid stays and does not run.
        if let Ok(one) = ephemeral_container(text, &with_all) {
            all.push(one);
            with_all = pod.with_ephemeral(all.clone());
        }
    }
    for value in new {
        let one = ephemeral_container(&value.to_string(), &with_all)
            .map_err(|errors| ActionError::Invalid(errors.iter().map(field).collect()))?;
        complete.push(one.1.to_string().into_boxed_str());
        all.push(one);
        with_all = pod.with_ephemeral(all.clone());
    }
    Ok(complete)
}

fn field(error: &parse::FieldError) -> FieldError {
    FieldError {
        field: error.field.clone(),
        reason: match error.kind {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Unsupported => "FieldValueNotSupported",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            _ => "FieldValueInvalid",
        },
        message: error.message.clone(),
    }
}
