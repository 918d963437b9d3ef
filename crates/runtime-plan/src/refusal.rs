//! The refusal of a request.

use rubelet_cgroup_plan::CgroupParentError;

/// A request that can't be fulfilled until the request or the host is changed; a retry does not
/// help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Refusal {
    /// The field of the request, as the CRI names it, such as `linux.security_context.apparmor`.
    pub field: String,
    /// The problem and the remedy.
    pub message: String,
}

impl Refusal {
    /// A refusal of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl From<CgroupParentError> for Refusal {
    fn from(error: CgroupParentError) -> Self {
        Self::new("linux.cgroup_parent", error.to_string())
    }
}
