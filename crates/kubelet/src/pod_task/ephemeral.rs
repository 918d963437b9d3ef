//! Ephemeral containers, which operators add to a running pod.

use rubelet_api::{parse::ephemeral_container, pod::Pod};

/// An ephemeral container does not fit its pod; contains the invalid fields.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct EphemeralError(String);

/// Adds ephemeral containers to a pod, each given as the JSON of a v1 EphemeralContainer.
///
/// # Errors
/// One of them does not fit the pod.
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
