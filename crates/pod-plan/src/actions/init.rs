//! How far the init containers of the current sandbox have come.

use rubelet_base::SandboxId;

use super::restart::should_restart;
use crate::{
    observed::{ContainerPhase, ObservedContainer},
    plan::PodSnapshot,
};
use rubelet_api::{container::Container, pod::RestartPolicy};

/// Progress of the init sequence.
pub(super) enum InitState<'a> {
    /// All have ended well, or there are none: the others may run.
    Done,
    /// This one is to be started.
    Start(&'a Container, Option<&'a ObservedContainer>),
    /// This one was created but not started.
    StartCreated(&'a Container, &'a ObservedContainer),
    /// This one runs.
    Wait(&'a Container),
    /// The runtime lost track of this one: stop it, then start it again.
    Replace(&'a Container, &'a ObservedContainer),
    /// This one failed for good.
    Failed(&'a Container),
}

/// Walks the init containers from last to first; the first with a record in this sandbox decides.
pub(super) fn state<'a>(snapshot: &PodSnapshot<'a>, sandbox: &SandboxId) -> InitState<'a> {
    let spec = &snapshot.pod.spec;
    let observed = snapshot.observed;
    let Some(first) = spec.init_containers.first() else {
        return InitState::Done;
    };
    let regular_active = spec.containers.iter().any(|container| {
        observed
            .newest_in(sandbox, &container.name)
            .is_some_and(|found| {
                matches!(
                    found.phase,
                    ContainerPhase::Created | ContainerPhase::Running { .. }
                )
            })
    });
    if regular_active {
        return InitState::Done;
    }
    for (index, init) in spec.init_containers.iter().enumerate().rev() {
        let Some(found) = observed.newest_in(sandbox, &init.name) else {
            continue;
        };
        return match &found.phase {
            ContainerPhase::Running { .. } => InitState::Wait(init),
            ContainerPhase::Created => InitState::StartCreated(init, found),
            ContainerPhase::Unknown if spec.restart_policy == RestartPolicy::Never => {
                InitState::Failed(init)
            }
            ContainerPhase::Unknown => InitState::Replace(init, found),
            ContainerPhase::Exited(exit) if exit.failed() => {
                // An OOM kill can leave exit code 0 in the record, but it is a failure all the same.
                let code = if exit.code == 0 { 137 } else { exit.code };
                if should_restart(spec.restart_policy, code) {
                    InitState::Start(init, Some(found))
                } else {
                    InitState::Failed(init)
                }
            }
            ContainerPhase::Exited(_) => match spec.init_containers.get(index + 1) {
                None => InitState::Done,
                Some(next) => InitState::Start(next, observed.newest(&next.name)),
            },
        };
    }
    InitState::Start(first, observed.newest(&first.name))
}
