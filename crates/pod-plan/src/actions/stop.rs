//! Decisions for a pod that must be removed, and the removal of dead containers.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{Actions, kill::kill};
use crate::{
    history::VolumeState,
    observed::{ContainerPhase, ObservedContainer, ObservedPod},
    reason::{KillCause, PlanReason},
    snapshot::PodSnapshot,
    step::{DeadContainer, Kill, KillOrder, Step},
    step_failure::StepFailure,
};

/// Decides for a pod that no source defines: stop it, then remove it completely.
pub(super) fn decide(snapshot: &PodSnapshot<'_>, grace: Duration, now: Timestamp) -> Actions {
    let mut actions = Actions {
        why: vec![PlanReason::NotWanted],
        ..Actions::default()
    };
    if let Some(failure) = &snapshot.history.teardown
        && let Some(until) = failure.waits_until(now)
    {
        actions.wake_by(until);
        return actions;
    }
    let observed = snapshot.observed;
    // Stop, remove, clean up: each only after an inspection has confirmed the previous one.
    if !observed.is_stopped() {
        stop_pod(snapshot, &mut actions, grace, KillCause::PodStops);
        return actions;
    }
    if observed.is_gone() {
        actions.steps.push(Step::CleanUp);
        actions.finished = true;
        return actions;
    }
    if !observed.containers.is_empty() {
        actions.steps.push(Step::RemoveContainers(
            observed.containers.iter().map(dead_container).collect(),
        ));
    }
    if !observed.sandboxes.is_empty() {
        let ids = observed
            .sandboxes
            .iter()
            .map(|sandbox| sandbox.id.clone())
            .collect();
        actions.steps.push(Step::RemoveSandboxes(ids));
    }
    actions
}

/// Removes the containers of a terminated pod before it is deleted: their writable layers and logs
/// take space that the node needs (kubelet: `DeleteAllUnusedContainers`).
pub(super) fn discard(snapshot: &PodSnapshot<'_>, actions: &mut Actions) {
    let dead: Vec<_> = snapshot
        .observed
        .containers
        .iter()
        .map(dead_container)
        .collect();
    if !dead.is_empty() {
        actions.why.push(PlanReason::Prunes(dead.len()));
        actions.steps.push(Step::RemoveContainers(dead));
    }
}

/// Stops all containers that may run, sidecars after the others, and then all sandboxes.
pub(super) fn stop_pod(
    snapshot: &PodSnapshot<'_>,
    actions: &mut Actions,
    grace: Duration,
    cause: KillCause,
) {
    let spec = &snapshot.pod.spec;
    let kills: Vec<Kill> = running(snapshot.observed)
        .map(|found| {
            let message = format!("Stopping container {}", found.name);
            let order = match spec.sidecar(&found.name) {
                Some((place, _)) => KillOrder::Sidecar(place),
                None if spec.containers.iter().any(|c| c.name == found.name) => KillOrder::Regular,
                None => KillOrder::Free,
            };
            let grace = match cause {
                // Most likely an edit: the grace period is that of the old definition.
                KillCause::SandboxReplaced => found.grace.unwrap_or(grace),
                _ => grace,
            };
            Kill {
                order,
                ..kill(found, cause, grace, message)
            }
        })
        .collect();
    for kill in &kills {
        actions
            .why
            .push(PlanReason::Kills(kill.name.clone(), cause));
    }
    if !kills.is_empty() {
        actions.steps.push(Step::KillContainers(kills));
    }
    let ready: Vec<_> = snapshot
        .observed
        .sandboxes
        .iter()
        .filter(|sandbox| sandbox.ready)
        .map(|sandbox| sandbox.id.clone())
        .collect();
    if !ready.is_empty() {
        actions.steps.push(Step::StopSandboxes(ready));
    }
}

/// Removes the volumes of a terminated pod once it is stopped (kubelet: `SyncTerminatedPod`): an
/// `emptyDir` in memory must not stay allocated until the pod is deleted.
pub(crate) fn remove_volumes(snapshot: &PodSnapshot<'_>, actions: &mut Actions, now: Timestamp) {
    let history = snapshot.history;
    let waits = |failure: &StepFailure| failure.waits_until(now).is_some();
    if history.teardown.as_ref().is_some_and(waits) {
        return;
    }
    let there = match history.volumes {
        VolumeState::Made => true,
        // A pod that was rejected never had any.
        VolumeState::Unknown => !snapshot.observed.is_gone(),
        VolumeState::Removed => false,
    };
    if there && snapshot.observed.is_stopped() {
        actions.steps.push(Step::RemoveVolumes);
    }
}

fn running(observed: &ObservedPod) -> impl Iterator<Item = &ObservedContainer> {
    observed
        .containers
        .iter()
        .filter(|container| container.phase.may_run())
}

/// Removes dead containers beyond the newest of each name, containers that are no longer in the
/// specification, and stopped sandboxes without containers.
pub(super) fn prune(snapshot: &PodSnapshot<'_>, actions: &mut Actions) {
    let observed = snapshot.observed;
    let mut kept = BTreeSet::new();
    let mut surplus = Vec::new();
    for found in &observed.containers {
        let in_spec = snapshot.pod.spec.container(&found.name).is_some();
        let keep = match &found.phase {
            ContainerPhase::Exited(_) => kept.insert(&found.name),
            // A container that was not started before a newer one was created never will be.
            ContainerPhase::Created => {
                let newest = observed.newest(&found.name);
                newest.is_some_and(|newest| newest.id == found.id)
            }
            ContainerPhase::Running { .. } | ContainerPhase::Unknown => continue,
        };
        if !in_spec || !keep {
            surplus.push(dead_container(found));
        }
    }
    let empty: Vec<_> = observed
        .sandboxes
        .iter()
        .skip(1)
        .filter(|sandbox| {
            !sandbox.ready
                && !observed.containers.iter().any(|found| {
                    found.sandbox == sandbox.id && !surplus.iter().any(|dead| dead.id == found.id)
                })
        })
        .map(|sandbox| sandbox.id.clone())
        .collect();
    if !surplus.is_empty() {
        actions.why.push(PlanReason::Prunes(surplus.len()));
        actions.steps.push(Step::RemoveContainers(surplus));
    }
    if !empty.is_empty() {
        actions.steps.push(Step::RemoveSandboxes(empty));
    }
}

pub(super) fn dead_container(found: &ObservedContainer) -> DeadContainer {
    DeadContainer {
        keep_log: false,
        ..dead_container_keeping_log(found)
    }
}

/// A record to remove while its log stays: the next instance continues from the log's number.
pub(super) fn dead_container_keeping_log(found: &ObservedContainer) -> DeadContainer {
    DeadContainer {
        name: found.name.clone(),
        id: found.id.clone(),
        restart_count: found.restart_count,
        keep_log: true,
    }
}
