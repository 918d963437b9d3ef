//! Why an action on a pod is rejected.

use rubelet_http_core::field_error::FieldError;

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
