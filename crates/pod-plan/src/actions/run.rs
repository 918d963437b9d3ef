//! Decisions for a pod that must run.

use jiff::Timestamp;
use rubelet_base::SandboxId;

use super::{
    Actions,
    builder::ActionsBuilder,
    init::{self, InitProgress},
    regular, replace, restart_all,
    sandbox::{self, SandboxState},
    stop,
};
use crate::{
    after, grace,
    intents::Eviction,
    reason::{KillCause, PlanReason},
    snapshot::PodSnapshot,
};

pub(super) fn decide(snapshot: &PodSnapshot<'_>, now: Timestamp) -> Actions {
    let mut builder = ActionsBuilder::new(snapshot, now);
    // All further steps would fail on the container or sandbox that could not be stopped or
    // removed.
    if let Some(failure) = &snapshot.history.teardown
        && let Some(until) = failure.waits_until(now)
    {
        builder.actions.wake_by(until);
        return builder.actions;
    }
    let grace = grace::of_pod(snapshot.pod.spec.termination_grace_period);
    let ended = snapshot.previous.is_some_and(|old| old.phase.is_terminal());
    if let Some(eviction) = &snapshot.intents.eviction
        && !ended
    {
        builder.actions.pod_failure = Some(eviction.clone());
        builder.why(PlanReason::Evicted(eviction.reason.clone()));
        let shorter = eviction.grace.map(grace::of_pod);
        let grace = shorter.map_or(grace, |shorter| shorter.min(grace));
        stop::stop_pod(snapshot, &mut builder.actions, grace, KillCause::Evicted);
        return builder.actions;
    }
    if deadline_passed(snapshot, now, &mut builder.actions) {
        builder.actions.pod_failure = Some(Eviction {
            reason: "DeadlineExceeded".into(),
            message: "Pod was active on the node longer than the specified deadline".into(),
            grace: None,
        });
        builder.why(PlanReason::DeadlineExceeded);
        stop::stop_pod(snapshot, &mut builder.actions, grace, KillCause::Deadline);
        return builder.actions;
    }
    if ended {
        builder.why(PlanReason::PhaseIsTerminal);
        stop::stop_pod(snapshot, &mut builder.actions, grace, KillCause::PodStops);
        if snapshot.intents.discard_containers && snapshot.observed.is_stopped() {
            stop::discard(snapshot, &mut builder.actions);
        }
        return builder.actions;
    }
    match sandbox::state(
        snapshot.pod,
        snapshot.observed,
        snapshot.history.sandbox_attempt,
    ) {
        SandboxState::Good(sandbox) => in_sandbox(&mut builder, &sandbox.id),
        SandboxState::Replace { attempt, why } => replace::decide(&mut builder, attempt, why),
    }
    builder.actions
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

/// Decides for a pod with a usable sandbox.
fn in_sandbox(builder: &mut ActionsBuilder<'_>, sandbox: &SandboxId) {
    let snapshot = builder.snapshot;
    if restart_all::decide(builder) {
        return;
    }
    stop_unexpected(builder);
    regular::ephemeral(builder, sandbox);
    let wanted = match init::decide(builder, sandbox) {
        InitProgress::Failed(name) => {
            builder.actions.why.push(PlanReason::InitFailed(name));
            let grace = snapshot.pod.spec.termination_grace_period;
            stop::stop_pod(snapshot, &mut builder.actions, grace, KillCause::PodStops);
            return;
        }
        InitProgress::Underway => true,
        InitProgress::Done => {
            let mut wanted = false;
            for container in &snapshot.pod.spec.containers {
                wanted |= regular::decide(builder, container, sandbox);
            }
            wanted
        }
    };
    if !wanted && builder.kills.is_empty() {
        // Sidecars and ephemeral containers do not keep a pod running.
        builder.actions.why = vec![PlanReason::PodCompleted];
        let grace = snapshot.pod.spec.termination_grace_period;
        stop::stop_pod(snapshot, &mut builder.actions, grace, KillCause::PodStops);
        stop::prune(snapshot, &mut builder.actions);
        return;
    }
    builder.append_steps();
    stop::prune(snapshot, &mut builder.actions);
    if builder.actions.why.is_empty() {
        builder.why(PlanReason::Converged);
    }
}

/// Stops running containers that are not in the specification or have a newer instance.
fn stop_unexpected(builder: &mut ActionsBuilder<'_>) {
    let snapshot = builder.snapshot;
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
            builder.kill(found, cause, false);
        }
    }
}
