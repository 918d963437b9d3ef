//! What can be done to one pod, and how that may fail.

use serde_json::Value;

use crate::{Object, PodPatch};

/// A pod by its full name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRef {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`; a static pod's ends in the node's name.
    pub name: String,
}

/// What is to be done to a pod. Answered once it is kept on disk; done afterwards.
#[derive(Debug, Clone)]
pub enum PodAction {
    /// Start containers anew in their place, without back-off. Answered with a document.
    Restart {
        /// Only this one; `None` means all that stay up.
        container: Option<String>,
    },
    /// End the pod within this time, or sooner than it ends already. Answered with the pod.
    Delete {
        /// Seconds from SIGTERM to SIGKILL; `None` leaves it to the pod.
        grace: Option<u64>,
    },
    /// Set conditions that are not the agent's own: see [`PodPatch::conditions`]. Answered with
    /// the pod.
    PatchStatus(PodPatch),
    /// Add ephemeral containers: see [`PodPatch::ephemeral_containers`]. Answered with the pod.
    AddEphemeral(PodPatch),
    /// Nothing: tell why the pod is as it is. Answered with a document.
    Why,
}

/// What came of it.
#[derive(Debug, Clone)]
pub enum PodAnswer {
    /// The pod as it is now.
    Pod(Object),
    /// A document; `apiVersion` and `kind` are filled in by the server.
    Document(Value),
}

/// Why it was not done.
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
    /// Fields of the pod would become what they must not be.
    #[error("{}", sentence(.0))]
    Invalid(Vec<FieldError>),
    /// The node failed.
    #[error("{0}")]
    Internal(String),
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, such as `status.phase`.
    pub field: String,
    /// `reason` of the cause in the Status: `FieldValueInvalid` or another of its kind.
    pub reason: &'static str,
    /// What is wrong, without the path: `Forbidden: …`.
    pub message: String,
}

impl FieldError {
    /// A field that can't be set in this way.
    pub fn forbidden(field: impl Into<String>, rule: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {rule}"),
        }
    }

    /// A value that breaks a rule.
    pub fn invalid(field: impl Into<String>, value: &Value, rule: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {rule}"),
        }
    }

    /// A value that is missing.
    pub fn required(field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueRequired",
            message: "Required value".to_owned(),
        }
    }
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
