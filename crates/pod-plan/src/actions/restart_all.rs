//! In-place restart of all containers, because one exited and a rule with the action
//! RestartAllContainers matches (KEP-5532).
//!
//! First all running containers are stopped. Once this has been observed and published, the records
//! are removed, that of the causing container last. Without records the pod starts again with its
//! first init container, in the same sandbox. The restart is in progress while a record of the
//! causing container exists: no other state is kept for it.

use std::time::Duration;

use rubelet_api::container::Container;

use super::{
    builder::ActionsBuilder, init::init_exit_code, kill::kill, restart::restarts_all,
    stop::dead_container_keeping_log,
};
use crate::{
    observed::{ContainerPhase, ObservedContainer},
    reason::{KillCause, PlanReason},
    step::Step,
};

/// Continues the restart of all containers; false if none is in progress.
pub(super) fn decide(builder: &mut ActionsBuilder<'_>) -> bool {
    let snapshot = builder.snapshot;
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
    builder.actions.restarting_all = true;
    builder.why(PlanReason::RestartsAllContainers(
        cause.name.clone(),
        exit.code,
    ));
    if let Some((until, _)) = snapshot
        .history
        .crash_wait(cause, exit.finished_at, builder.now)
    {
        builder.why(PlanReason::BackOff(cause.name.clone(), until));
        builder.actions.wake_by(until);
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
            builder.kills.push(kill);
        }
        builder.append_steps();
        return true;
    }
    let place = |found: &ObservedContainer| {
        let is_source = sources.iter().any(|(one, _)| one.name == found.name);
        let is_init = spec.init_containers.iter().any(|c| c.name == found.name);
        // The newest record of a cause is removed last, because it marks the restart as in
        // progress.
        let is_newest = matches!(found.phase, ContainerPhase::Exited(_))
            && snapshot.observed.newest(&found.name).map(|n| &n.id) == Some(&found.id);
        (is_source && is_newest, is_source, is_init)
    };
    let mut records: Vec<&ObservedContainer> =
        snapshot.observed.containers.iter().filter(of_pod).collect();
    records.sort_by_key(|found| place(found));
    builder.actions.steps.push(Step::NoteRestart {
        name: cause.name.clone(),
        after_exit: exit.finished_at,
    });
    builder.actions.steps.push(Step::RemoveContainers(
        records
            .into_iter()
            .map(dead_container_keeping_log)
            .collect(),
    ));
    true
}
