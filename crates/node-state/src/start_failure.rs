//! Failed starts of containers.

/// A failed start of a container: waiting reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartFailure {
    /// The waiting reason, such as `ErrImagePull`.
    pub reason: &'static str,
    /// What went wrong.
    pub message: String,
}

impl StartFailure {
    /// A failure with this waiting reason and message.
    #[must_use]
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
