//! Operators' actions on pods: validated against the pod, then stored as an intent.

mod conditions;
mod delete;
mod ephemeral;
mod restart;

use std::sync::Arc;

use rubelet_base::ErrorChain;
use rubelet_node_state::{intents::IntentError, pod_board::PodEntry};
use rubelet_server::{ActionError, Object, PodAction, PodAnswer, PodRef, Resource};
use serde_json::Value;

use super::{LocalView, why};

/// Performs an action on a pod.
pub(super) async fn act(
    view: &LocalView,
    pod: &PodRef,
    action: PodAction,
) -> Result<PodAnswer, ActionError> {
    let entry = entry(view, pod, matches!(action, PodAction::Delete { .. }))?;
    match action {
        PodAction::Why => {
            let explanation = why::explain(&view.parts, &entry).await;
            let document = serde_json::to_value(explanation)
                .map_err(|error| ActionError::Internal(error.to_string()))?;
            return Ok(PodAnswer::Document(document));
        }
        PodAction::Restart { container } => {
            let answer = restart::restart(view, &entry, container.as_deref()).await?;
            return Ok(PodAnswer::Document(answer));
        }
        PodAction::Delete { grace } => delete::delete(view, &entry, grace).await?,
        PodAction::PatchStatus(patch) => conditions::set(view, pod, &entry, &patch).await?,
        PodAction::AddEphemeral(patch) => ephemeral::add(view, pod, &entry, &patch).await?,
    }
    object(view, pod).map(PodAnswer::Pod)
}

/// The pod of that name on the board. If there are two (a replacement waits until the old pod is
/// gone), `ending` selects the terminating one.
fn entry(view: &LocalView, pod: &PodRef, ending: bool) -> Result<Arc<PodEntry>, ActionError> {
    let rows = view.parts.pods.list();
    let named = rows.into_iter().map(|(_, _, entry)| entry).filter(|entry| {
        let name = &entry.pod.name;
        *name.namespace == *pod.namespace && *name.name == *pod.name
    });
    named
        .min_by_key(|entry| entry.deletion.is_some() != ending)
        .ok_or(ActionError::NotFound)
}

/// The pod as it is shown.
fn object(view: &LocalView, pod: &PodRef) -> Result<Object, ActionError> {
    let items = view.pods.listing().items;
    let is_meant =
        |object: &Object| *object.namespace == *pod.namespace && *object.name == *pod.name;
    items
        .into_iter()
        .find(is_meant)
        .ok_or(ActionError::NotFound)
}

/// The pod as it is shown, as JSON.
fn json(view: &LocalView, pod: &PodRef, entry: &PodEntry) -> Result<Value, ActionError> {
    let json = object(view, pod)?.to_json(Resource::Pods);
    if json["metadata"]["uid"] == entry.pod.uid.as_str() {
        Ok(json)
    } else {
        Err(ActionError::Conflict(
            "another pod of that name is still there; try again".to_owned(),
        ))
    }
}

fn not_kept(error: &IntentError) -> ActionError {
    ActionError::Internal(ErrorChain(error).to_string())
}
