//! The init containers of the current sandbox: those that run to completion one after the other,
//! and sidecars (KEP-753).

use rubelet_api::{
    container::Container,
    pod::{PodSpec, RestartPolicy},
};
use rubelet_base::SandboxId;

use super::{
    builder::ActionsBuilder,
    restart::{policy_of, restart_requested, should_restart},
};
use crate::{
    definition,
    observed::{ContainerPhase, Exit, ObservedContainer},
    probe::{ProbeKind, ProbeResult},
    reason::{KillCause, PlanReason},
};

/// Progress of the init sequence.
pub(super) enum InitProgress {
    /// The regular containers may run.
    Done,
    /// An init container still has to start or to complete.
    Underway,
    /// This init container failed permanently.
    Failed(Box<str>),
}

/// Walks the init containers from last to first. The first one with a record in this sandbox marks
/// the progress of the sequence; of those before it only sidecars matter.
pub(super) fn decide(builder: &mut ActionsBuilder<'_>, sandbox: &SandboxId) -> InitProgress {
    let spec = &builder.snapshot.pod.spec;
    if spec.init_containers.is_empty() {
        return InitProgress::Done;
    }
    let mut walk = InitWalk {
        sandbox,
        done: any_regular(builder, sandbox),
        decided: false,
        waits: Vec::new(),
    };
    walk.decided = walk.done;
    let first_start = builder.starts.len();
    for (index, init) in spec.init_containers.iter().enumerate().rev() {
        let found = builder.snapshot.observed.newest_in(sandbox, &init.name);
        let sidecar = init.restart_policy == Some(RestartPolicy::Always);
        match found {
            // A later container has a record: the sidecar must run beside it.
            None if walk.decided && sidecar => {
                let before = builder.snapshot.observed.newest(&init.name);
                builder.start(init, before, sandbox);
            }
            None => continue,
            Some(found) if sidecar => walk.sidecar(builder, spec, index, found),
            Some(_) if walk.decided => {}
            Some(found) => {
                if let Some(failed) = walk.regular(builder, spec, index, found) {
                    return InitProgress::Failed(failed);
                }
            }
        }
        walk.decided = true;
    }
    if !walk.decided {
        let first = &spec.init_containers[0];
        let before = builder.snapshot.observed.newest(&first.name);
        builder.start(first, before, sandbox);
    }
    // The walk went backwards.
    builder.starts[first_start..].reverse();
    for name in walk.waits {
        builder.why(PlanReason::WaitsForInit(name));
    }
    if walk.done {
        InitProgress::Done
    } else {
        InitProgress::Underway
    }
}

/// True if a regular container has a record in this sandbox, which proves that the init containers
/// have completed.
fn any_regular(builder: &ActionsBuilder<'_>, sandbox: &SandboxId) -> bool {
    let snapshot = builder.snapshot;
    let mut regular = snapshot.pod.spec.containers.iter();
    regular.any(|one| snapshot.observed.newest_in(sandbox, &one.name).is_some())
}

struct InitWalk<'a> {
    sandbox: &'a SandboxId,
    /// The regular containers may run.
    done: bool,
    /// A later container has marked the progress of the sequence.
    decided: bool,
    waits: Vec<Box<str>>,
}

impl InitWalk<'_> {
    fn sidecar(
        &mut self,
        builder: &mut ActionsBuilder<'_>,
        spec: &PodSpec,
        index: usize,
        found: &ObservedContainer,
    ) {
        let init = &spec.init_containers[index];
        let changed = definition::container_changed(init, found);
        let asked = restart_requested(builder.snapshot, &init.name);
        match &found.phase {
            ContainerPhase::Running { .. } => {
                let failed = [
                    (ProbeKind::Startup, KillCause::Startup),
                    (ProbeKind::Liveness, KillCause::Liveness),
                ]
                .into_iter()
                .find(|(kind, _)| {
                    kind.of(init).is_some()
                        && builder.snapshot.probes.get(&found.id, *kind)
                            == Some(ProbeResult::Failure)
                })
                .map(|(_, cause)| cause);
                let cause = if changed {
                    Some(KillCause::DefinitionChanged)
                } else if asked {
                    Some(KillCause::Requested)
                } else {
                    failed
                };
                if let Some(cause) = cause {
                    builder.kill(found, cause, true);
                    builder.start(init, Some(found), self.sandbox);
                } else if builder.post_start(init, found) {
                    self.waits.push(init.name.clone());
                } else if !builder.snapshot.started(init, found) {
                    if !self.decided {
                        self.waits.push(init.name.clone());
                    }
                } else if !self.decided {
                    self.next(builder, spec, index);
                }
            }
            ContainerPhase::Created if !changed => builder.start_created(init, found),
            ContainerPhase::Unknown => {
                builder.kill(found, KillCause::Unknown, true);
                builder.start(init, Some(found), self.sandbox);
            }
            ContainerPhase::Created | ContainerPhase::Exited(_) => {
                builder.start(init, Some(found), self.sandbox);
            }
        }
    }

    /// Handles the last init container with a record that is not a sidecar; returns its name if it
    /// failed permanently.
    fn regular(
        &mut self,
        builder: &mut ActionsBuilder<'_>,
        spec: &PodSpec,
        index: usize,
        found: &ObservedContainer,
    ) -> Option<Box<str>> {
        let init = &spec.init_containers[index];
        match &found.phase {
            ContainerPhase::Running { .. } => self.waits.push(init.name.clone()),
            ContainerPhase::Created => builder.start_created(init, found),
            ContainerPhase::Unknown => {
                // It may have run, and must not run twice.
                if policy_of(init, spec.restart_policy) == RestartPolicy::Never {
                    return Some(init.name.clone());
                }
                builder.kill(found, KillCause::Unknown, true);
                builder.start(init, Some(found), self.sandbox);
            }
            ContainerPhase::Exited(exit) if exit.failed() => {
                if !should_restart(init, spec.restart_policy, init_exit_code(exit)) {
                    return Some(init.name.clone());
                }
                builder.start(init, Some(found), self.sandbox);
            }
            ContainerPhase::Exited(_) => self.next(builder, spec, index),
        }
        None
    }

    /// After a completed init container: starts the next one, or lets the regular containers run.
    fn next(&mut self, builder: &mut ActionsBuilder<'_>, spec: &PodSpec, index: usize) {
        match spec.init_containers.get(index + 1) {
            None => self.done = true,
            Some(next) => {
                let next: &Container = next;
                let before = builder.snapshot.observed.newest(&next.name);
                builder.start(next, before, self.sandbox);
            }
        }
    }
}

/// The exit code of an init container. An OOM kill may be recorded with exit code 0, but is a
/// failure.
pub(crate) fn init_exit_code(exit: &Exit) -> i32 {
    if exit.code == 0 && exit.failed() {
        137
    } else {
        exit.code
    }
}
