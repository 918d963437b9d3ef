//! Decisions for a pod that is to run.

use jiff::Timestamp;
use rubelet_api::{
    container::Container,
    pod::{Pod, RestartPolicy},
};
use rubelet_base::SandboxId;

use super::{
    Actions, init,
    init::InitState,
    restart::should_restart,
    sandbox::{self, SandboxState},
    stop,
};
use crate::{
    after, definition,
    history::{Failure, RETRY_INITIAL, RETRY_MAX},
    observed::{ContainerPhase, ObservedContainer, ObservedPod},
    plan::{Kill, PodSnapshot, Step},
    why::{KillCause, StartCause, Why},
};

pub(super) fn decide(snapshot: &PodSnapshot<'_>, now: Timestamp) -> Actions {
    let mut actions = Actions::default();
    if let Some(failure) = &snapshot.history.teardown
        && failure.retry_at() > now
    {
        actions.wake_by(failure.retry_at());
        return actions;
    }
    if deadline_passed(snapshot, now, &mut actions) {
        actions.deadline_exceeded = true;
        actions.why.push(Why::DeadlineExceeded);
        stop::halt(
            snapshot,
            &mut actions,
            grace(snapshot.pod),
            KillCause::PodStops,
        );
        return actions;
    }
    if snapshot
        .previous
        .is_some_and(|status| status.phase.is_terminal())
    {
        actions.why.push(Why::PhaseIsTerminal);
        stop::halt(
            snapshot,
            &mut actions,
            grace(snapshot.pod),
            KillCause::PodStops,
        );
        return actions;
    }
    match sandbox::state(snapshot.pod, snapshot.observed) {
        SandboxState::Good(sandbox) => in_sandbox(snapshot, &sandbox.id, now, &mut actions),
        SandboxState::Replace { attempt, why } => {
            replace_sandbox(snapshot, attempt, why, now, &mut actions);
        }
    }
    actions
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

/// Step B of the rules: the sandbox is missing or has to go.
fn replace_sandbox(
    snapshot: &PodSnapshot<'_>,
    attempt: u32,
    why: Why,
    now: Timestamp,
    actions: &mut Actions,
) {
    let (pod, observed) = (snapshot.pod, snapshot.observed);
    actions.why.push(why);
    let never_again = pod.spec.restart_policy == RestartPolicy::Never
        && attempt != 0
        && !observed.containers.is_empty();
    let nothing_to_start = pod.spec.containers.iter().all(|container| {
        pod.spec.restart_policy == RestartPolicy::OnFailure
            && observed
                .newest(&container.name)
                .and_then(|found| found.phase.exit())
                .is_some_and(|exit| exit.code == 0)
    });
    let cause = if never_again || nothing_to_start {
        actions.why.push(Why::PodCompleted);
        KillCause::PodStops
    } else {
        KillCause::SandboxReplaced
    };
    stop::halt(snapshot, actions, grace(pod), cause);
    if never_again || nothing_to_start {
        return;
    }
    let failed = snapshot.history.sandbox.as_ref().map(Failure::retry_at);
    let retry_at = failed.max(short_lived(observed, now));
    if let Some(retry_at) = retry_at.filter(|at| *at > now) {
        actions.why.push(Why::SandboxRetry(retry_at));
        actions.wake_by(retry_at);
        return;
    }
    actions.steps.push(Step::CreateSandbox { attempt });
}

/// When a sandbox that could not be used soon after it was made may be replaced: the next one would
/// most likely be no better. An edit is no such cause.
fn short_lived(observed: &ObservedPod, now: Timestamp) -> Option<Timestamp> {
    let newest = observed.sandboxes.first()?;
    let unusable = !newest.ready || !newest.host_network && newest.ips.is_empty();
    let pause = if newest.attempt < 3 {
        RETRY_INITIAL
    } else {
        RETRY_MAX
    };
    // After a step back of the clock it counts as old.
    (unusable && newest.created_at <= now).then(|| after(newest.created_at, pause))
}

/// Step C of the rules: the sandbox is fine.
fn in_sandbox(
    snapshot: &PodSnapshot<'_>,
    sandbox: &SandboxId,
    now: Timestamp,
    actions: &mut Actions,
) {
    let mut kills = strangers(snapshot, actions);
    let mut starts = Vec::new();
    let mut wanted = 0;
    match init::state(snapshot, sandbox) {
        InitState::Wait(init) => {
            actions.why.push(Why::WaitsForInit(init.name.clone()));
            wanted += 1;
        }
        InitState::Failed(init) => {
            actions.why.push(Why::InitFailed(init.name.clone()));
            stop::halt(snapshot, actions, grace(snapshot.pod), KillCause::PodStops);
            return;
        }
        InitState::StartCreated(init, found) => {
            wanted += 1;
            start_created(snapshot, init, found, now, &mut starts, actions);
        }
        InitState::Replace(init, found) => {
            wanted += 1;
            kills.push(kill(snapshot.pod, found, KillCause::Unknown, true, actions));
            start(
                snapshot,
                init,
                Some(found),
                sandbox,
                now,
                &mut starts,
                actions,
            );
        }
        InitState::Start(init, found) => {
            wanted += 1;
            start(snapshot, init, found, sandbox, now, &mut starts, actions);
        }
        InitState::Done => {
            for container in &snapshot.pod.spec.containers {
                wanted += regular(
                    snapshot,
                    container,
                    sandbox,
                    now,
                    &mut kills,
                    &mut starts,
                    actions,
                );
            }
        }
    }
    if wanted == 0 {
        actions.why.push(Why::PodCompleted);
        stop::halt(snapshot, actions, grace(snapshot.pod), KillCause::PodStops);
        stop::prune(snapshot, actions);
        return;
    }
    if !kills.is_empty() {
        actions.steps.push(Step::KillContainers(kills));
    }
    actions.steps.append(&mut starts);
    stop::prune(snapshot, actions);
    if actions.why.is_empty() {
        actions.why.push(Why::Converged);
    }
}

/// Containers that run but are not in the specification, or beside a newer instance.
fn strangers(snapshot: &PodSnapshot<'_>, actions: &mut Actions) -> Vec<Kill> {
    let mut kills = Vec::new();
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
            kills.push(kill(snapshot.pod, found, cause, false, actions));
        }
    }
    kills
}

/// Decides for one regular container; 1 if it runs or will run, else 0.
fn regular(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    sandbox: &SandboxId,
    now: Timestamp,
    kills: &mut Vec<Kill>,
    starts: &mut Vec<Step>,
    actions: &mut Actions,
) -> usize {
    let policy = snapshot.pod.spec.restart_policy;
    let found = snapshot.observed.newest(&container.name);
    let changed = found.is_some_and(|found| definition::container_changed(container, found));
    match found.map(|found| (found, &found.phase)) {
        Some((found, ContainerPhase::Running { .. })) if found.sandbox != *sandbox => {
            kills.push(kill(
                snapshot.pod,
                found,
                KillCause::SandboxReplaced,
                true,
                actions,
            ));
            start(
                snapshot,
                container,
                Some(found),
                sandbox,
                now,
                starts,
                actions,
            );
        }
        Some((found, ContainerPhase::Running { .. })) if changed => {
            kills.push(kill(
                snapshot.pod,
                found,
                KillCause::DefinitionChanged,
                true,
                actions,
            ));
            start(
                snapshot,
                container,
                Some(found),
                sandbox,
                now,
                starts,
                actions,
            );
        }
        Some((_, ContainerPhase::Running { .. })) => {}
        Some((found, ContainerPhase::Created)) if found.sandbox == *sandbox && !changed => {
            start_created(snapshot, container, found, now, starts, actions);
        }
        Some((found, ContainerPhase::Unknown)) => {
            kills.push(kill(snapshot.pod, found, KillCause::Unknown, true, actions));
            start(
                snapshot,
                container,
                Some(found),
                sandbox,
                now,
                starts,
                actions,
            );
        }
        Some((_, ContainerPhase::Exited(exit)))
            if !changed && !should_restart(policy, exit.code) =>
        {
            return 0;
        }
        _ => start(snapshot, container, found, sandbox, now, starts, actions),
    }
    1
}

/// Starts a container now, or waits for its back-off.
fn start(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    found: Option<&ObservedContainer>,
    sandbox: &SandboxId,
    now: Timestamp,
    starts: &mut Vec<Step>,
    actions: &mut Actions,
) {
    let exit = found.and_then(|found| found.phase.exit());
    let crash = exit
        .and_then(|exit| {
            snapshot
                .history
                .crash_wait(container, exit.finished_at, now)
        })
        .map(|(until, _)| until);
    let failed = failure_wait(snapshot, container, now, actions);
    if let Some(until) = crash.max(failed) {
        wait(container, until, actions);
        return;
    }
    let cause = match found {
        None => StartCause::First,
        Some(found) if definition::container_changed(container, found) => {
            StartCause::DefinitionChanged
        }
        Some(found) if found.sandbox != *sandbox => StartCause::SandboxReplaced,
        Some(found) => match &found.phase {
            ContainerPhase::Exited(exit) => StartCause::Exited(exit.code),
            _ => StartCause::Unknown,
        },
    };
    actions.why.push(Why::Starts(container.name.clone(), cause));
    starts.push(Step::StartContainer {
        name: container.name.clone(),
        sandbox: sandbox.clone(),
        restart_count: found.map(|found| found.restart_count.saturating_add(1)),
        after_exit: exit.map(|exit| exit.finished_at),
    });
}

/// Until when a container waits because its last start failed.
fn failure_wait(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    now: Timestamp,
    actions: &mut Actions,
) -> Option<Timestamp> {
    let history = snapshot.history.containers.get(&container.name)?;
    let failure = history.failure.as_ref()?;
    if let Some(flip) = crate::image::backoff_shown_from(failure)
        && flip > now
    {
        actions.wake_by(flip);
    }
    Some(failure.retry_at()).filter(|until| *until > now)
}

fn wait(container: &Container, until: Timestamp, actions: &mut Actions) {
    let name = container.name.clone();
    actions.why.push(Why::BackOff(name, until));
    actions.wake_by(until);
}

fn start_created(
    snapshot: &PodSnapshot<'_>,
    container: &Container,
    found: &ObservedContainer,
    now: Timestamp,
    starts: &mut Vec<Step>,
    actions: &mut Actions,
) {
    if let Some(until) = failure_wait(snapshot, container, now, actions) {
        wait(container, until, actions);
        return;
    }
    let cause = StartCause::CreatedOnly(found.id.clone());
    actions.why.push(Why::Starts(container.name.clone(), cause));
    starts.push(Step::StartCreated {
        name: container.name.clone(),
        id: found.id.clone(),
    });
}

fn kill(
    pod: &Pod,
    found: &ObservedContainer,
    cause: KillCause,
    restarts: bool,
    actions: &mut Actions,
) -> Kill {
    actions.why.push(Why::Kills(found.name.clone(), cause));
    let name = &found.name;
    let mut message = match cause {
        KillCause::DefinitionChanged => format!("Container {name} definition changed"),
        KillCause::Unknown => {
            format!("Container {name} is in unknown state, try killing it before restart")
        }
        _ => format!("Stopping container {name}"),
    };
    if restarts && cause == KillCause::DefinitionChanged {
        message.push_str(", will be restarted");
    }
    Kill {
        name: name.clone(),
        id: found.id.clone(),
        grace: grace(pod),
        message: message.into(),
    }
}

fn grace(pod: &Pod) -> std::time::Duration {
    pod.spec.termination_grace_period
}
