//! Containers.

use rubelet_cri::v1;
use serde::{Deserialize, Serialize};

use super::{SandboxPhase, StateError, Verdict};

/// How far a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerPhase {
    /// It is being made; nobody has its identifier yet.
    Creating,
    /// It waits for its start.
    Created,
    /// Its program runs.
    Running,
    /// Its program ended, or never began.
    Exited,
    /// It is being removed.
    Removing,
    /// Nobody can tell: its supervisor does not answer.
    Unknown,
}

impl ContainerPhase {
    /// The state that the CRI knows, or `None` while nobody knows the container yet.
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
    /// Another container wants to see its processes.
    Target,
}

/// What `call` does on the container `id`; `phase` is `None` if there is none, and `sandbox` is the
/// phase of its pod.
///
/// # Errors
/// There is none, or it is in a state in which the call makes no sense. Stopping and removing what
/// is gone is success.
pub fn container(
    call: ContainerCall,
    id: &str,
    phase: Option<ContainerPhase>,
    sandbox: Option<SandboxPhase>,
) -> Result<Verdict, StateError> {
    use ContainerCall as Call;
    use ContainerPhase as Phase;
    let Some(phase) = phase.filter(|phase| *phase != Phase::Creating) else {
        return match call {
            Call::Stop | Call::Remove => Ok(Verdict::Nothing),
            _ => Err(StateError::NotFound(format!(
                "an error occurred when try to find container {id:?}: not found"
            ))),
        };
    };
    let is = phase.cri().map_or("", |state| state.as_str_name());
    let precondition =
        |text: String| Err(StateError::Precondition(format!("container {id:?} {text}")));
    match (call, phase) {
        (Call::Status | Call::Stats, _) => Ok(Verdict::Proceed),
        (Call::Start, Phase::Created) if sandbox == Some(SandboxPhase::Ready) => {
            Ok(Verdict::Proceed)
        }
        (Call::Start, Phase::Created) => {
            precondition("can't be started: its sandbox is not ready".to_owned())
        }
        (_, Phase::Removing) if !matches!(call, Call::Stop | Call::Remove) => {
            precondition("is being removed".to_owned())
        }
        (Call::Start, _) => precondition(format!("can't be started: it is in state {is}")),
        (Call::Stop, Phase::Exited | Phase::Removing) => Ok(Verdict::Nothing),
        (Call::Stop, _) => Ok(Verdict::Proceed),
        (Call::Remove, Phase::Created | Phase::Running | Phase::Unknown) => Ok(Verdict::StopFirst),
        (Call::Remove, _) => Ok(Verdict::Proceed),
        (Call::Update, Phase::Created | Phase::Running) => Ok(Verdict::Proceed),
        (Call::Exec | Call::Attach | Call::ReopenLog | Call::Target, Phase::Running) => {
            Ok(Verdict::Proceed)
        }
        (Call::Exec | Call::Attach | Call::ReopenLog | Call::Target | Call::Update, _) => {
            precondition(format!("is not running: it is in state {is}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ContainerCall as Call, ContainerPhase as Phase, *};

    const PHASES: [Phase; 5] = [
        Phase::Created,
        Phase::Running,
        Phase::Exited,
        Phase::Removing,
        Phase::Unknown,
    ];

    fn ask(call: Call, phase: Option<Phase>) -> Result<Verdict, StateError> {
        container(call, "c", phase, Some(SandboxPhase::Ready))
    }

    #[test]
    fn only_a_created_container_of_a_ready_sandbox_starts() {
        assert_eq!(ask(Call::Start, Some(Phase::Created)), Ok(Verdict::Proceed));
        for phase in &PHASES[1..] {
            let error = ask(Call::Start, Some(*phase)).unwrap_err();
            assert!(matches!(error, StateError::Precondition(_)), "{phase:?}");
        }
        let stopped = Some(SandboxPhase::NotReady);
        assert!(container(Call::Start, "c", Some(Phase::Created), stopped).is_err());
    }

    #[test]
    fn stopping_and_removing_never_fail() {
        for phase in PHASES.into_iter().map(Some).chain([None]) {
            assert!(ask(Call::Stop, phase).is_ok(), "{phase:?}");
            assert!(ask(Call::Remove, phase).is_ok(), "{phase:?}");
        }
        assert_eq!(ask(Call::Stop, Some(Phase::Exited)), Ok(Verdict::Nothing));
        assert_eq!(
            ask(Call::Remove, Some(Phase::Running)),
            Ok(Verdict::StopFirst)
        );
        assert_eq!(ask(Call::Remove, Some(Phase::Exited)), Ok(Verdict::Proceed));
    }

    #[test]
    fn commands_need_a_running_container_and_limits_one_that_has_not_ended() {
        for call in [Call::Exec, Call::ReopenLog, Call::Target] {
            for phase in PHASES {
                assert_eq!(ask(call, Some(phase)).is_ok(), phase == Phase::Running);
            }
        }
        for phase in PHASES {
            let fits = matches!(phase, Phase::Created | Phase::Running);
            assert_eq!(ask(Call::Update, Some(phase)).is_ok(), fits, "{phase:?}");
        }
        let error = ask(Call::Exec, None).unwrap_err().into_cri("ExecSync");
        assert!(error.is_not_found());
    }
}
