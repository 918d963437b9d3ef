//! The init containers of the current sandbox: those that run to their end one after the other,
//! and the sidecars that stay (KEP-753).

use rubelet_api::{
    container::Container,
    pod::{PodSpec, RestartPolicy},
};
use rubelet_base::SandboxId;

use super::{
    draft::Draft,
    restart::{is_asked, policy_of, should_restart},
};
use crate::{
    definition,
    observed::{ContainerPhase, Exit, ObservedContainer},
    probe::{ProbeKind, ProbeResult},
    why::{KillCause, Why},
};

/// How far the init containers have come.
pub(super) enum Progress {
    /// The regular containers may run.
    Done,
    /// Something is still to be started or to end.
    Underway,
    /// This one failed permanently.
    Failed(Box<str>),
}

/// Walks the init containers from last to first. The first with a record in this sandbox shows how
/// far the sequence has come; of those before it only sidecars matter.
pub(super) fn decide(draft: &mut Draft<'_>, sandbox: &SandboxId) -> Progress {
    let spec = &draft.snapshot.pod.spec;
    if spec.init_containers.is_empty() {
        return Progress::Done;
    }
    let mut walk = Walk {
        sandbox,
        done: any_regular(draft, sandbox),
        decided: false,
        waits: Vec::new(),
    };
    walk.decided = walk.done;
    let first_start = draft.starts.len();
    for (index, init) in spec.init_containers.iter().enumerate().rev() {
        let found = draft.snapshot.observed.newest_in(sandbox, &init.name);
        let sidecar = init.restart_policy == Some(RestartPolicy::Always);
        match found {
            // A later container has a record: the sidecar has to run beside it.
            None if walk.decided && sidecar => {
                let before = draft.snapshot.observed.newest(&init.name);
                draft.start(init, before, sandbox);
            }
            None => continue,
            Some(found) if sidecar => walk.sidecar(draft, spec, index, found),
            Some(_) if walk.decided => {}
            Some(found) => {
                if let Some(failed) = walk.regular(draft, spec, index, found) {
                    return Progress::Failed(failed);
                }
            }
        }
        walk.decided = true;
    }
    if !walk.decided {
        let first = &spec.init_containers[0];
        let before = draft.snapshot.observed.newest(&first.name);
        draft.start(first, before, sandbox);
    }
    // The walk went backwards.
    draft.starts[first_start..].reverse();
    for name in walk.waits {
        draft.why(Why::WaitsForInit(name));
    }
    if walk.done {
        Progress::Done
    } else {
        Progress::Underway
    }
}

/// A regular container of this sandbox is created only after the init containers are done, whatever
/// its state is now.
fn any_regular(draft: &Draft<'_>, sandbox: &SandboxId) -> bool {
    let snapshot = draft.snapshot;
    let mut regular = snapshot.pod.spec.containers.iter();
    regular.any(|one| snapshot.observed.newest_in(sandbox, &one.name).is_some())
}

struct Walk<'a> {
    sandbox: &'a SandboxId,
    /// The regular containers may run.
    done: bool,
    /// A later container has shown how far the sequence has come.
    decided: bool,
    waits: Vec<Box<str>>,
}

impl Walk<'_> {
    fn sidecar(
        &mut self,
        draft: &mut Draft<'_>,
        spec: &PodSpec,
        index: usize,
        found: &ObservedContainer,
    ) {
        let init = &spec.init_containers[index];
        let changed = definition::container_changed(init, found);
        let asked = is_asked(draft.snapshot, &init.name);
        match &found.phase {
            ContainerPhase::Running { .. } => {
                let failed = [
                    (ProbeKind::Startup, KillCause::Startup),
                    (ProbeKind::Liveness, KillCause::Liveness),
                ]
                .into_iter()
                .find(|(kind, _)| {
                    kind.of(init).is_some()
                        && draft.snapshot.probes.get(&found.id, *kind) == Some(ProbeResult::Failure)
                })
                .map(|(_, cause)| cause);
                let cause = if changed {
                    Some(KillCause::DefinitionChanged)
                } else if asked {
                    Some(KillCause::Asked)
                } else {
                    failed
                };
                if let Some(cause) = cause {
                    draft.kill(found, cause, true);
                    draft.start(init, Some(found), self.sandbox);
                } else if draft.post_start(init, found) {
                    self.waits.push(init.name.clone());
                } else if !draft.snapshot.started(init, found) {
                    if !self.decided {
                        self.waits.push(init.name.clone());
                    }
                } else if !self.decided {
                    self.next(draft, spec, index);
                }
            }
            ContainerPhase::Created if !changed => draft.start_created(init, found),
            ContainerPhase::Unknown => {
                draft.kill(found, KillCause::Unknown, true);
                draft.start(init, Some(found), self.sandbox);
            }
            ContainerPhase::Created | ContainerPhase::Exited(_) => {
                draft.start(init, Some(found), self.sandbox);
            }
        }
    }

    /// An init container that runs to its end, the last of those with a record; its name if it
    /// failed permanently.
    fn regular(
        &mut self,
        draft: &mut Draft<'_>,
        spec: &PodSpec,
        index: usize,
        found: &ObservedContainer,
    ) -> Option<Box<str>> {
        let init = &spec.init_containers[index];
        match &found.phase {
            ContainerPhase::Running { .. } => self.waits.push(init.name.clone()),
            ContainerPhase::Created => draft.start_created(init, found),
            ContainerPhase::Unknown => {
                // It may have run, and must not run twice.
                if policy_of(init, spec.restart_policy) == RestartPolicy::Never {
                    return Some(init.name.clone());
                }
                draft.kill(found, KillCause::Unknown, true);
                draft.start(init, Some(found), self.sandbox);
            }
            ContainerPhase::Exited(exit) if exit.failed() => {
                if !should_restart(init, spec.restart_policy, init_exit_code(exit)) {
                    return Some(init.name.clone());
                }
                draft.start(init, Some(found), self.sandbox);
            }
            ContainerPhase::Exited(_) => self.next(draft, spec, index),
        }
        None
    }

    /// This one is through: the next starts, or the regular containers may run.
    fn next(&mut self, draft: &mut Draft<'_>, spec: &PodSpec, index: usize) {
        match spec.init_containers.get(index + 1) {
            None => self.done = true,
            Some(next) => {
                let next: &Container = next;
                let before = draft.snapshot.observed.newest(&next.name);
                draft.start(next, before, self.sandbox);
            }
        }
    }
}

/// An OOM kill can leave exit code 0 in the record of an init container, but it is a failure.
pub(crate) fn init_exit_code(exit: &Exit) -> i32 {
    if exit.code == 0 && exit.failed() {
        137
    } else {
        exit.code
    }
}
