//! Regular containers, and ephemeral ones beside them.

use rubelet_api::{container::Container, pod::RestartPolicy};
use rubelet_base::SandboxId;

use super::{
    builder::ActionsBuilder,
    restart::{policy_of, restart_requested, should_restart},
};
use crate::{
    definition,
    observed::{ContainerPhase, ObservedContainer},
    probe::{ProbeKind, ProbeResult},
    reason::KillCause,
};

/// Decides for one regular container; true if it runs or will run.
pub(super) fn decide(
    builder: &mut ActionsBuilder<'_>,
    container: &Container,
    sandbox: &SandboxId,
) -> bool {
    let snapshot = builder.snapshot;
    let pod_policy = snapshot.pod.spec.restart_policy;
    let found = snapshot.observed.newest(&container.name);
    let changed = found.is_some_and(|found| definition::container_changed(container, found));
    match found.map(|found| (found, &found.phase)) {
        Some((found, ContainerPhase::Running { .. })) => {
            let Some((cause, restarts)) =
                reason_to_stop(builder, container, found, sandbox, changed)
            else {
                if !builder.post_start(container, found) {
                    builder.precreate_container(container, found, sandbox);
                }
                return true;
            };
            builder.kill(found, cause, restarts);
            if restarts {
                builder.start(container, Some(found), sandbox);
            }
            return restarts;
        }
        Some((found, ContainerPhase::Created)) if found.sandbox == *sandbox && !changed => {
            builder.start_created(container, found);
        }
        Some((found, ContainerPhase::Unknown)) => {
            builder.kill(found, KillCause::Unknown, true);
            builder.start(container, Some(found), sandbox);
        }
        Some((found, ContainerPhase::Exited(exit)))
            if !changed
                && !should_restart(container, pod_policy, exit.code)
                && !restart_requested(snapshot, &found.name) =>
        {
            return false;
        }
        _ => builder.start(container, found, sandbox),
    }
    true
}

/// The reason to stop a running container, and whether it is started again.
fn reason_to_stop(
    builder: &ActionsBuilder<'_>,
    container: &Container,
    found: &ObservedContainer,
    sandbox: &SandboxId,
    changed: bool,
) -> Option<(KillCause, bool)> {
    let snapshot = builder.snapshot;
    if found.sandbox != *sandbox {
        return Some((KillCause::SandboxReplaced, true));
    }
    if changed {
        return Some((KillCause::DefinitionChanged, true));
    }
    if restart_requested(snapshot, &found.name) {
        return Some((KillCause::Requested, true));
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
    // Restart rules match exit codes, and there is none yet.
    let policy = policy_of(container, snapshot.pod.spec.restart_policy);
    Some((cause, policy != RestartPolicy::Never))
}

/// Starts ephemeral containers, which are never restarted.
pub(super) fn ephemeral(builder: &mut ActionsBuilder<'_>, sandbox: &SandboxId) {
    let snapshot = builder.snapshot;
    for one in &snapshot.pod.spec.ephemeral_containers {
        match snapshot.observed.newest(&one.container.name) {
            None => builder.start(&one.container, None, sandbox),
            Some(found)
                if matches!(found.phase, ContainerPhase::Created) && found.sandbox == *sandbox =>
            {
                builder.start_created(&one.container, found);
            }
            Some(_) => {}
        }
    }
}
