//! Actions on one pod, and their errors.

use rubelet_http_core::field_error::FieldError;
use serde_json::Value;

use crate::{Object, PodPatch};

/// A pod by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRef {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`; a static pod's ends in the node's name.
    pub name: String,
}

/// An action on a pod. Answered once it is stored on disk; carried out afterwards.
#[derive(Debug, Clone)]
pub enum PodAction {
    /// Restart containers in place, without backoff. Answered with a document.
    Restart {
        /// Only this container; `None` means all that keep running.
        container: Option<String>,
    },
    /// Terminate the pod within this time, if it does not terminate sooner. Answered with the pod.
    Delete {
        /// Seconds from SIGTERM to SIGKILL; `None` leaves it to the pod.
        grace: Option<u64>,
    },
    /// Set conditions that are not the agent's own: see [`PodPatch::conditions`]. Answered with
    /// the pod.
    PatchStatus(PodPatch),
    /// Add ephemeral containers: see [`PodPatch::ephemeral_containers`]. Answered with the pod.
    AddEphemeral(PodPatch),
    /// Explain the state of the pod. Answered with a document.
    Why,
}

/// The result of an action.
#[derive(Debug, Clone)]
pub enum PodAnswer {
    /// The current pod.
    Pod(Object),
    /// A document; `apiVersion` and `kind` are filled in by the server.
    Document(Value),
}

/// Why an action was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// There is no such pod.
    #[error("there is no such pod")]
    NotFound,
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// The state of the pod does not allow it.
    #[error("{0}")]
    Conflict(String),
    /// The change would make fields of the pod invalid.
    #[error("{}", sentence(.0))]
    Invalid(Vec<FieldError>),
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}

impl From<FieldError> for ActionError {
    fn from(error: FieldError) -> Self {
        Self::Invalid(vec![error])
    }
}

fn sentence(errors: &[FieldError]) -> String {
    let all: Vec<String> = errors
        .iter()
        .map(|error| format!("{}: {}", error.field, error.message))
        .collect();
    all.join("; ")
}
