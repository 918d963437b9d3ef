//! A request that can't be carried out as it is.

use rubelet_cri::{CriError, CriErrorKind};

/// A request that can't be fulfilled. The caller has to change it, or the host; trying again
/// changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Refusal {
    /// The field of the request, as the CRI names it, such as `linux.security_context.apparmor`.
    pub field: String,
    /// What is wrong with it and what would help.
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

    /// The answer to the RPC `call`.
    #[must_use]
    pub fn into_cri(self, call: &'static str) -> CriError {
        CriError::new(call, CriErrorKind::InvalidArgument, self.to_string())
    }
}
