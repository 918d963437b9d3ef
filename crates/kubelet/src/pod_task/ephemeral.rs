//! Ephemeral containers: what operators add to a pod that runs.

use rubelet_api::{parse::ephemeral_container, pod::Pod};

/// An ephemeral container does not fit its pod: the fields that are wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct EphemeralError(String);

/// The pod with these containers, each the JSON of a v1 EphemeralContainer.
///
/// # Errors
/// One of them does not fit the pod; the fields that are wrong.
pub(super) fn complete(pod: &Pod, containers: &[Box<str>]) -> Result<Pod, EphemeralError> {
    let mut complete = pod.clone();
    let mut added = Vec::new();
    for text in containers {
        let one = ephemeral_container(text, &complete).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            EphemeralError(errors.join("; "))
        })?;
        added.push(one);
        complete = pod.with_ephemeral(added.clone());
    }
    Ok(complete)
}
