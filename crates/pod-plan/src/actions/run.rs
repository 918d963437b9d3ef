//! Decisions for a pod that must run.

use jiff::Timestamp;
use rubelet_base::SandboxId;

use super::{
    Actions,
    draft::Draft,
    init::{self, Progress},
    regular, replace, restart_all,
    sandbox::{self, SandboxState},
    stop,
};
use crate::{
    after, grace,
    intents::Eviction,
    snapshot::PodSnapshot,
    why::{KillCause, Why},
};

pub(super) fn decide(snapshot: &PodSnapshot<'_>, now: Timestamp) -> Actions {
    let mut draft = Draft::new(snapshot, now);
    // What could not be stopped or removed would be met by all further steps.
    if let Some(failure) = &snapshot.history.teardown
        && let Some(until) = failure.waits_until(now)
    {
        draft.actions.wake_by(until);
        return draft.actions;
    }
    let grace = grace::of_pod(snapshot.pod.spec.termination_grace_period);
    let ended = snapshot.previous.is_some_and(|old| old.phase.is_terminal());
    if let Some(eviction) = &snapshot.intents.eviction
        && !ended
    {
        draft.actions.early_end = Some(eviction.clone());
        draft.why(Why::Evicted(eviction.reason.clone()));
        stop::stop_pod(snapshot, &mut draft.actions, grace, KillCause::Evicted);
        return draft.actions;
    }
    if deadline_passed(snapshot, now, &mut draft.actions) {
        draft.actions.early_end = Some(Eviction {
            reason: "DeadlineExceeded".into(),
            message: "Pod was active on the node longer than the specified deadline".into(),
        });
        draft.why(Why::DeadlineExceeded);
        stop::stop_pod(snapshot, &mut draft.actions, grace, KillCause::Deadline);
        return draft.actions;
    }
    if ended {
        draft.why(Why::PhaseIsTerminal);
        stop::stop_pod(snapshot, &mut draft.actions, grace, KillCause::PodStops);
        return draft.actions;
    }
    match sandbox::state(
        snapshot.pod,
        snapshot.observed,
        snapshot.history.sandbox_attempt,
    ) {
        SandboxState::Good(sandbox) => in_sandbox(&mut draft, &sandbox.id),
        SandboxState::Replace { attempt, why } => replace::decide(&mut draft, attempt, why),
    }
    draft.actions
}

fn deadline_passed(snapshot: &PodSnapshot<'_>, now: Timestamp, actions: &mut Actions) -> bool {
    let (Some(limit), Some(previous)) = (snapshot.pod.spec.active_deadline, snapshot.previous)
    else {
        return false;
    };
    if previous.phase.is_terminal() {
        return false;
    }
    let deadline = after(previous.start_time, limit);
    if deadline > now {
        actions.wake_by(deadline);
    }
    deadline <= now
}

/// The sandbox is fine: step C of the rules.
fn in_sandbox(draft: &mut Draft<'_>, sandbox: &SandboxId) {
    let snapshot = draft.snapshot;
    if restart_all::decide(draft) {
        return;
    }
    stop_unexpected(draft);
    regular::ephemeral(draft, sandbox);
    let wanted = match init::decide(draft, sandbox) {
        Progress::Failed(name) => {
            draft.actions.why.push(Why::InitFailed(name));
            let grace = snapshot.pod.spec.termination_grace_period;
            stop::stop_pod(snapshot, &mut draft.actions, grace, KillCause::PodStops);
            return;
        }
        Progress::Underway => true,
        Progress::Done => {
            let mut wanted = false;
            for container in &snapshot.pod.spec.containers {
                wanted |= regular::decide(draft, container, sandbox);
            }
            wanted
        }
    };
    if !wanted && draft.kills.is_empty() {
        // Sidecars and ephemeral containers do not keep a pod going.
        draft.actions.why = vec![Why::PodCompleted];
        let grace = snapshot.pod.spec.termination_grace_period;
        stop::stop_pod(snapshot, &mut draft.actions, grace, KillCause::PodStops);
        stop::prune(snapshot, &mut draft.actions);
        return;
    }
    draft.order();
    stop::prune(snapshot, &mut draft.actions);
    if draft.actions.why.is_empty() {
        draft.why(Why::Converged);
    }
}

/// Containers that run but are not in the specification, or beside a newer instance.
fn stop_unexpected(draft: &mut Draft<'_>) {
    let snapshot = draft.snapshot;
    for found in &snapshot.observed.containers {
        let newest = snapshot.observed.newest(&found.name);
        let cause = if snapshot.pod.spec.container(&found.name).is_none() {
            KillCause::NotInSpec
        } else if newest.is_some_and(|newest| newest.id != found.id) {
            KillCause::Superseded
        } else {
            continue;
        };
        if found.phase.may_run() {
            draft.kill(found, cause, false);
        }
    }
}
