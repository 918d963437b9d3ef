//! Regular containers, and ephemeral ones beside them.

use rubelet_api::{container::Container, pod::RestartPolicy};
use rubelet_base::SandboxId;

use super::{
    draft::Draft,
    restart::{is_asked, policy_of, should_restart},
};
use crate::{
    definition,
    observed::{ContainerPhase, ObservedContainer},
    probe::{ProbeKind, ProbeResult},
    why::KillCause,
};

/// Decides for one regular container; true if it runs or will run.
pub(super) fn decide(draft: &mut Draft<'_>, container: &Container, sandbox: &SandboxId) -> bool {
    let snapshot = draft.snapshot;
    let pod_policy = snapshot.pod.spec.restart_policy;
    let found = snapshot.observed.newest(&container.name);
    let changed = found.is_some_and(|found| definition::container_changed(container, found));
    match found.map(|found| (found, &found.phase)) {
        Some((found, ContainerPhase::Running { .. })) => {
            let Some((cause, restarts)) = end_of_running(draft, container, found, sandbox, changed)
            else {
                if !draft.post_start(container, found) {
                    draft.precreate_container(container, found, sandbox);
                }
                return true;
            };
            draft.kill(found, cause, restarts);
            if restarts {
                draft.start(container, Some(found), sandbox);
            }
            return restarts;
        }
        Some((found, ContainerPhase::Created)) if found.sandbox == *sandbox && !changed => {
            draft.start_created(container, found);
        }
        Some((found, ContainerPhase::Unknown)) => {
            draft.kill(found, KillCause::Unknown, true);
            draft.start(container, Some(found), sandbox);
        }
        Some((found, ContainerPhase::Exited(exit)))
            if !changed
                && !should_restart(container, pod_policy, exit.code)
                && !is_asked(snapshot, &found.name) =>
        {
            return false;
        }
        _ => draft.start(container, found, sandbox),
    }
    true
}

/// Why a running container has to end, and whether it starts again.
fn end_of_running(
    draft: &Draft<'_>,
    container: &Container,
    found: &ObservedContainer,
    sandbox: &SandboxId,
    changed: bool,
) -> Option<(KillCause, bool)> {
    let snapshot = draft.snapshot;
    if found.sandbox != *sandbox {
        return Some((KillCause::SandboxReplaced, true));
    }
    if changed {
        return Some((KillCause::DefinitionChanged, true));
    }
    if is_asked(snapshot, &found.name) {
        return Some((KillCause::Asked, true));
    }
    let failed = |kind: ProbeKind| {
        kind.of(container).is_some()
            && snapshot.probes.get(&found.id, kind) == Some(ProbeResult::Failure)
    };
    let cause = if failed(ProbeKind::Liveness) {
        KillCause::Liveness
    } else if failed(ProbeKind::Startup) {
        KillCause::Startup
    } else {
        return None;
    };
    // Rules judge exit codes, and there is none yet.
    let policy = policy_of(container, snapshot.pod.spec.restart_policy);
    Some((cause, policy != RestartPolicy::Never))
}

/// Ephemeral containers start once and are never started again.
pub(super) fn ephemeral(draft: &mut Draft<'_>, sandbox: &SandboxId) {
    let snapshot = draft.snapshot;
    for one in &snapshot.pod.spec.ephemeral_containers {
        match snapshot.observed.newest(&one.container.name) {
            None => draft.start(&one.container, None, sandbox),
            Some(found)
                if matches!(found.phase, ContainerPhase::Created) && found.sandbox == *sandbox =>
            {
                draft.start_created(&one.container, found);
            }
            Some(_) => {}
        }
    }
}
