//! Restart of all containers in place, because one exited and a rule with the action
//! RestartAllContainers matches (KEP-5532).
//!
//! First everything that runs is stopped; once that has been observed and published, the records
//! are removed, that of the container that caused it last. Without records the pod starts again
//! with its first init container, in the same sandbox. While a record of the cause is there, the
//! restart is not done: no other state is kept for it.

use std::time::Duration;

use rubelet_api::container::Container;

use super::{
    draft::Draft, init::init_exit_code, kill::kill, restart::restarts_all,
    stop::dead_container_keeping_log,
};
use crate::{
    observed::{ContainerPhase, ObservedContainer},
    step::Step,
    why::{KillCause, Why},
};

/// Works on the restart of all containers; false if there is none.
pub(super) fn decide(draft: &mut Draft<'_>) -> bool {
    let snapshot = draft.snapshot;
    let spec = &snapshot.pod.spec;
    let source = |container: &Container| {
        let found = snapshot.observed.newest(&container.name)?;
        let exit = found.phase.exit()?;
        restarts_all(container, init_exit_code(exit)).then_some(exit)
    };
    let sources: Vec<_> = spec
        .all_containers()
        .filter_map(|one| source(one).map(|exit| (one, exit)))
        .collect();
    let Some((cause, exit)) = sources.first() else {
        return false;
    };
    draft.actions.restarting_all = true;
    draft.why(Why::RestartsAllContainers(cause.name.clone(), exit.code));
    if let Some((until, _)) = snapshot
        .history
        .crash_wait(cause, exit.finished_at, draft.now)
    {
        draft.why(Why::BackOff(cause.name.clone(), until));
        draft.actions.wake_by(until);
        return true;
    }
    let of_pod = |found: &&ObservedContainer| spec.all_containers().any(|c| c.name == found.name);
    let running: Vec<&ObservedContainer> = snapshot
        .observed
        .containers
        .iter()
        .filter(of_pod)
        .filter(|found| found.phase.may_run())
        .collect();
    if !running.is_empty() {
        for found in running {
            let message = format!("Stopping container {}", found.name);
            let kill = kill(found, KillCause::RestartsAll, Duration::ZERO, message);
            draft.kills.push(kill);
        }
        draft.order();
        return true;
    }
    let place = |found: &ObservedContainer| {
        let is_source = sources.iter().any(|(one, _)| one.name == found.name);
        let is_init = spec.init_containers.iter().any(|c| c.name == found.name);
        // The newest record of a cause goes last: until then the restart is not forgotten.
        let is_newest = matches!(found.phase, ContainerPhase::Exited(_))
            && snapshot.observed.newest(&found.name).map(|n| &n.id) == Some(&found.id);
        (is_source && is_newest, is_source, is_init)
    };
    let mut records: Vec<&ObservedContainer> =
        snapshot.observed.containers.iter().filter(of_pod).collect();
    records.sort_by_key(|found| place(found));
    draft.actions.steps.push(Step::NoteRestart {
        name: cause.name.clone(),
        after_exit: exit.finished_at,
    });
    draft.actions.steps.push(Step::RemoveContainers(
        records
            .into_iter()
            .map(dead_container_keeping_log)
            .collect(),
    ));
    true
}
