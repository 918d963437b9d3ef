//! Actions on one pod, and their errors.

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

/// An error of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The field's path, such as `status.phase`.
    pub field: String,
    /// `reason` of the cause in the Status: `FieldValueInvalid` or another of its kind.
    pub reason: &'static str,
    /// The error, without the path: `Forbidden: …`.
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
