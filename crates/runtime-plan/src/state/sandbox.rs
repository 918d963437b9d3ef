//! Sandboxes.

use rubelet_cri::v1;
use serde::{Deserialize, Serialize};

use super::{CallDecision, StateError};

/// The phase of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxPhase {
    /// It is being created; no client has its identifier yet.
    Creating,
    /// Containers can be created in it.
    Ready,
    /// It was stopped, its shim exited, or the host was rebooted.
    NotReady,
    /// It is being removed.
    Removing,
}

impl SandboxPhase {
    /// The state in the CRI; `None` while no client knows the sandbox yet.
    #[must_use]
    pub fn cri(self) -> Option<v1::PodSandboxState> {
        match self {
            Self::Creating => None,
            Self::Ready => Some(v1::PodSandboxState::SandboxReady),
            Self::NotReady | Self::Removing => Some(v1::PodSandboxState::SandboxNotready),
        }
    }
}

/// Calls on a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxCall {
    /// `PodSandboxStatus`.
    Status,
    /// `StopPodSandbox`.
    Stop,
    /// `RemovePodSandbox`.
    Remove,
    /// `CreateContainer` in it.
    CreateContainer,
    /// `PortForward`.
    PortForward,
    /// `PodSandboxStats`.
    Stats,
    /// `UpdatePodSandboxResources`.
    Update,
}

/// Decides about `call` on the sandbox `id`; `phase` is `None` if it does not exist.
///
/// # Errors
/// It does not exist, or it is not ready. Stopping and removing a missing sandbox succeeds.
pub fn sandbox(
    call: SandboxCall,
    id: &str,
    phase: Option<SandboxPhase>,
) -> Result<CallDecision, StateError> {
    use SandboxCall as Call;
    use SandboxPhase as Phase;
    let precondition = |text: &str| Err(StateError::Precondition(format!("sandbox {id:?} {text}")));
    let Some(phase) = phase.filter(|phase| *phase != Phase::Creating) else {
        return match call {
            Call::Stop | Call::Remove => Ok(CallDecision::Nothing),
            _ => Err(StateError::NotFound(format!(
                "an error occurred when try to find sandbox {id:?}: not found"
            ))),
        };
    };
    match (call, phase) {
        (Call::Status | Call::Stats, _) => Ok(CallDecision::Proceed),
        // An interrupted stop is finished by the next one.
        (Call::Stop, _) => Ok(CallDecision::Proceed),
        (Call::Remove, Phase::Ready) => Ok(CallDecision::StopFirst),
        (Call::Remove, _) => Ok(CallDecision::Proceed),
        (Call::CreateContainer | Call::PortForward | Call::Update, Phase::Ready) => {
            Ok(CallDecision::Proceed)
        }
        (Call::CreateContainer | Call::PortForward | Call::Update, Phase::Removing) => {
            precondition("is being removed")
        }
        (Call::CreateContainer | Call::PortForward | Call::Update, _) => {
            precondition("is not ready: it was stopped, or its shim has exited")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SandboxCall as Call, SandboxPhase as Phase, *};

    #[test]
    fn stopping_and_removing_can_be_repeated_for_ever() {
        for call in [Call::Stop, Call::Remove] {
            for gone in [None, Some(Phase::Creating)] {
                assert_eq!(sandbox(call, "s", gone), Ok(CallDecision::Nothing));
            }
            for phase in [Phase::NotReady, Phase::Removing] {
                assert_eq!(sandbox(call, "s", Some(phase)), Ok(CallDecision::Proceed));
            }
        }
        assert_eq!(
            sandbox(Call::Remove, "s", Some(Phase::Ready)),
            Ok(CallDecision::StopFirst)
        );
    }

    #[test]
    fn containers_are_made_in_ready_sandboxes_only() {
        let call = Call::CreateContainer;
        assert_eq!(
            sandbox(call, "s", Some(Phase::Ready)),
            Ok(CallDecision::Proceed)
        );
        for phase in [Phase::NotReady, Phase::Removing] {
            let error = sandbox(call, "s", Some(phase)).unwrap_err();
            assert!(matches!(error, StateError::Precondition(_)));
        }
        let error = sandbox(call, "s", None).unwrap_err();
        assert!(matches!(error, StateError::NotFound(_)));
    }
}
