//! The phases of sandboxes and containers, and the calls that are valid in each. Calls on one
//! object are serialized, so a call sees the phases with "-ing" only after a crash or from outside.
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

/// The action of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallDecision {
    /// It does its work.
    Proceed,
    /// Nothing: the requested state is already reached, and the call succeeds.
    Nothing,
    /// It forcibly stops the object first, then does its work.
    StopFirst,
}

/// Why a call can't be carried out now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The object does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The call is not valid in the object's state.
    #[error("{0}")]
    Precondition(String),
}
