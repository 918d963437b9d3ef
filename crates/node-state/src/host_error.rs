//! Failed operations on the host for a pod.

use std::error::Error;

use rubelet_base::{ErrorChain, event_reason};

/// The message of that event.
#[must_use]
pub fn failed_sandbox(why: &str) -> String {
    format!("Failed to create pod sandbox: {why}")
}

/// A failed operation on the host for a pod.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// The reason of the event to raise, such as `FailedMount`.
    pub reason: &'static str,
    /// What went wrong, with its causes.
    pub message: String,
}

impl HostError {
    /// An error with its causes, for the event of this reason.
    #[must_use]
    pub fn new(reason: &'static str, error: &(dyn Error + 'static)) -> Self {
        Self {
            reason,
            message: ErrorChain(error).to_string(),
        }
    }

    /// An error that prevents the creation of the sandbox.
    #[must_use]
    pub fn sandbox(error: &(dyn Error + 'static)) -> Self {
        Self {
            reason: event_reason::FAILED_SANDBOX,
            message: failed_sandbox(&ErrorChain(error).to_string()),
        }
    }
}

/// A warning that does not stop the operation: reason and message of an event.
pub type HostWarning = (&'static str, String);
