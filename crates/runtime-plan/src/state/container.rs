//! Containers.

use rubelet_cri::v1;
use serde::{Deserialize, Serialize};

use super::{CallDecision, SandboxPhase, StateError};

/// The phase of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerPhase {
    /// It is being created; no client has its identifier yet.
    Creating,
    /// It waits for its start.
    Created,
    /// Its program runs.
    Running,
    /// Its program exited, or was never started.
    Exited,
    /// It is being removed.
    Removing,
    /// Unknown: its shim does not respond.
    Unknown,
}

impl ContainerPhase {
    /// The state in the CRI; `None` while no client knows the container yet.
    #[must_use]
    pub fn cri(self) -> Option<v1::ContainerState> {
        match self {
            Self::Creating => None,
            Self::Created => Some(v1::ContainerState::ContainerCreated),
            Self::Running => Some(v1::ContainerState::ContainerRunning),
            Self::Exited | Self::Removing => Some(v1::ContainerState::ContainerExited),
            Self::Unknown => Some(v1::ContainerState::ContainerUnknown),
        }
    }
}

/// Calls on a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerCall {
    /// `ContainerStatus`.
    Status,
    /// `StartContainer`.
    Start,
    /// `StopContainer`.
    Stop,
    /// `RemoveContainer`.
    Remove,
    /// `ExecSync` and `Exec`.
    Exec,
    /// `Attach`.
    Attach,
    /// `ReopenContainerLog`.
    ReopenLog,
    /// `UpdateContainerResources`.
    Update,
    /// `ContainerStats`.
    Stats,
    /// Another container joins its PID namespace.
    Target,
}

/// Decides about `call` on the container `id`; `phase` is `None` if it does not exist, and
/// `sandbox` is the phase of its pod.
///
/// # Errors
/// It does not exist, or the call is not valid in its state. Stopping and removing a missing
/// container succeeds.
pub fn container(
    call: ContainerCall,
    id: &str,
    phase: Option<ContainerPhase>,
    sandbox: Option<SandboxPhase>,
) -> Result<CallDecision, StateError> {
    use ContainerCall as Call;
    use ContainerPhase as Phase;
    let Some(phase) = phase.filter(|phase| *phase != Phase::Creating) else {
        return match call {
            Call::Stop | Call::Remove => Ok(CallDecision::Nothing),
            _ => Err(StateError::NotFound(format!(
                "an error occurred when try to find container {id:?}: not found"
            ))),
        };
    };
    let is = phase.cri().map_or("", |state| state.as_str_name());
    let precondition =
        |text: String| Err(StateError::Precondition(format!("container {id:?} {text}")));
    match (call, phase) {
        (Call::Status | Call::Stats, _) => Ok(CallDecision::Proceed),
        (Call::Start, Phase::Created) if sandbox == Some(SandboxPhase::Ready) => {
            Ok(CallDecision::Proceed)
        }
        (Call::Start, Phase::Created) => {
            precondition("cannot be started: its sandbox is not ready".to_owned())
        }
        (_, Phase::Removing) if !matches!(call, Call::Stop | Call::Remove) => {
            precondition("is being removed".to_owned())
        }
        (Call::Start, _) => precondition(format!("cannot be started: it is in state {is}")),
        (Call::Stop, Phase::Exited | Phase::Removing) => Ok(CallDecision::Nothing),
        (Call::Stop, _) => Ok(CallDecision::Proceed),
        (Call::Remove, Phase::Created | Phase::Running | Phase::Unknown) => {
            Ok(CallDecision::StopFirst)
        }
        (Call::Remove, _) => Ok(CallDecision::Proceed),
        (Call::Update, Phase::Created | Phase::Running) => Ok(CallDecision::Proceed),
        (Call::Exec | Call::Attach | Call::ReopenLog | Call::Target, Phase::Running) => {
            Ok(CallDecision::Proceed)
        }
        (Call::Exec | Call::Attach | Call::ReopenLog | Call::Target | Call::Update, _) => {
            precondition(format!("is not running: it is in state {is}"))
        }
    }
}

#[cfg(test)]
mod tests;
