//! Tests of `container`.

use super::{ContainerCall as Call, ContainerPhase as Phase, *};

const PHASES: [Phase; 5] = [
    Phase::Created,
    Phase::Running,
    Phase::Exited,
    Phase::Removing,
    Phase::Unknown,
];

fn ask(call: Call, phase: Option<Phase>) -> Result<CallDecision, StateError> {
    container(call, "c", phase, Some(SandboxPhase::Ready))
}

#[test]
fn only_a_created_container_of_a_ready_sandbox_starts() {
    assert_eq!(
        ask(Call::Start, Some(Phase::Created)),
        Ok(CallDecision::Proceed)
    );
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
    assert_eq!(
        ask(Call::Stop, Some(Phase::Exited)),
        Ok(CallDecision::Nothing)
    );
    assert_eq!(
        ask(Call::Remove, Some(Phase::Running)),
        Ok(CallDecision::StopFirst)
    );
    assert_eq!(
        ask(Call::Remove, Some(Phase::Exited)),
        Ok(CallDecision::Proceed)
    );
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
    let error = ask(Call::Exec, None).unwrap_err();
    assert!(matches!(error, StateError::NotFound(_)));
}
