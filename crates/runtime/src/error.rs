//! The error of a call, without the name of the call.

use std::{error::Error, fmt};

use rubelet_base::ErrorChain;
use rubelet_cri::{Call, Code, CriError, CriErrorKind};

/// A failure inside the runtime, with the status code that the CRI client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeError {
    pub(crate) kind: CriErrorKind,
    pub(crate) message: String,
}

/// The result of a step of a call.
pub(crate) type Result<T, E = RuntimeError> = std::result::Result<T, E>;

impl RuntimeError {
    pub(crate) fn new(kind: CriErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// An operation on the machine failed; a retry may succeed.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(CriErrorKind::Other(Code::Unknown), message)
    }

    /// `what` failed because of `error`; the message contains the causes of `error`, too.
    pub(crate) fn because(what: impl fmt::Display, error: &(dyn Error + 'static)) -> Self {
        Self::failed(format!("{what}: {}", ErrorChain(error)))
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(CriErrorKind::NotFound, message)
    }

    /// The message of containerd, for calls that check the container's state.
    pub(crate) fn container_not_found(id: &str) -> Self {
        let message = format!("an error occurred when try to find container {id:?}: not found");
        Self::not_found(message)
    }

    /// As [`Self::container_not_found`], for a sandbox.
    pub(crate) fn sandbox_not_found(id: &str) -> Self {
        let message = format!("an error occurred when try to find sandbox {id:?}: not found");
        Self::not_found(message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(CriErrorKind::InvalidArgument, message)
    }

    /// The object is not in a state in which this can be done.
    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self::new(CriErrorKind::Other(Code::FailedPrecondition), message)
    }

    /// The error of the call `C`.
    pub(crate) fn of<C: Call>(self) -> CriError {
        CriError::new(C::NAME, self.kind, self.message)
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for RuntimeError {}
