//! Why a call failed, before it is known by which name it was called.

use std::{error::Error, fmt};

use rubelet_base::ErrorChain;
use rubelet_cri::{Call, Code, CriError, CriErrorKind};

/// A failure inside the runtime, already in the CRI's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: CriErrorKind,
    pub(crate) message: String,
}

/// What a step of a call returns.
pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(kind: CriErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    /// Something on the machine failed; trying again may help.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(CriErrorKind::Other(Code::Unknown), message)
    }

    /// `what` failed because of `error`, whose causes are told, too.
    pub(crate) fn because(what: impl fmt::Display, error: &(dyn Error + 'static)) -> Self {
        Self::failed(format!("{what}: {}", ErrorChain(error)))
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(CriErrorKind::NotFound, message)
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

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fault {}
