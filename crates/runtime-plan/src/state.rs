//! How far sandboxes and containers are, and what each call may do then. Calls on one object come
//! one after the other, so a call sees the phases with "-ing" only after a crash or from outside.
//!
//! ```text
//! sandbox     Creating ─> Ready ─> NotReady ─> Removing ─> gone
//! container   Creating ─> Created ─> Running ─> Exited ─> Removing ─> gone
//!                            └─────────────────────┘  a start that fails, a stop before a start
//! ```

mod container;
mod sandbox;

pub use container::{ContainerCall, ContainerPhase, container};
pub use sandbox::{SandboxCall, SandboxPhase, sandbox};

use rubelet_cri::{Code, CriError, CriErrorKind};

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallDecision {
    /// Its work.
    Proceed,
    /// Nothing: what it wants is so already. It answers with success.
    Nothing,
    /// It stops the object by force first, then does its work.
    StopFirst,
}

/// Why a call can't be carried out now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The object is in a state in which the call makes no sense.
    #[error("{0}")]
    Precondition(String),
}

impl StateError {
    /// The answer to the RPC `call`.
    #[must_use]
    pub fn into_cri(self, call: &'static str) -> CriError {
        let kind = match &self {
            Self::NotFound(_) => CriErrorKind::NotFound,
            Self::Precondition(_) => CriErrorKind::Other(Code::FailedPrecondition),
        };
        CriError::new(call, kind, self.to_string())
    }
}
