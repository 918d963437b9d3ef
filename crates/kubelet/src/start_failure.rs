//! Why a container does not start.

/// Why a container could not be started: the waiting reason and the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl StartFailure {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
        }
    }
}
