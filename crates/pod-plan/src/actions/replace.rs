//! The sandbox is missing or has to go: step B of the rules.

use jiff::Timestamp;
use rubelet_api::{container::Container, pod::RestartPolicy};

use super::{
    draft::Draft,
    init::init_exit_code,
    restart::{policy_of, should_restart},
    stop,
};
use crate::{
    after,
    history::{RETRY_INITIAL, RETRY_MAX},
    observed::{ContainerPhase, ObservedPod},
    snapshot::PodSnapshot,
    step::Step,
    why::{KillCause, Why},
};

pub(super) fn decide(draft: &mut Draft<'_>, attempt: u32, why: Why) {
    let snapshot = draft.snapshot;
    let (pod, observed) = (snapshot.pod, snapshot.observed);
    draft.why(why);
    draft.actions.sandbox_unusable = true;
    let never_again = attempt != 0 && never_again(snapshot);
    let over = never_again || nothing_to_start(snapshot);
    draft.actions.given_up = over;
    let cause = if over {
        draft.actions.why = vec![Why::PodCompleted];
        KillCause::PodStops
    } else {
        KillCause::SandboxReplaced
    };
    let grace = pod.spec.termination_grace_period;
    stop::stop_pod(snapshot, &mut draft.actions, grace, cause);
    if over {
        return;
    }
    let failed = snapshot.history.sandbox.as_ref();
    let failed = failed.and_then(|failure| failure.waits_until(draft.now));
    let retry_at = failed.max(short_lived(observed, draft.now));
    if let Some(retry_at) = retry_at.filter(|at| *at > draft.now) {
        draft.why(Why::SandboxRetry(retry_at));
        draft.actions.wake_by(retry_at);
        return;
    }
    // One that is dead may still hold its address.
    let dead = observed.sandboxes.first().filter(|newest| !newest.ready);
    if let Some(dead) = dead {
        let stop = Step::StopSandboxes(vec![dead.id.clone()]);
        draft.actions.steps.push(stop);
    }
    draft.actions.steps.push(Step::CreateSandbox { attempt });
}

/// True for a pod that is not started again once its sandbox is lost: its policy is Never, and
/// something in it has run that may not run twice. The kubelet checks the pod's policy and whether
/// there is any record; pods whose containers have a policy of their own, or that got no further
/// than their sidecars, are then left for ever with nothing in them.
fn never_again(snapshot: &PodSnapshot<'_>) -> bool {
    let spec = &snapshot.pod.spec;
    let newest = |container: &Container| snapshot.observed.newest(&container.name);
    let may_run_again = |container: &Container| match newest(container).map(|found| &found.phase) {
        Some(ContainerPhase::Exited(exit)) => {
            should_restart(container, spec.restart_policy, init_exit_code(exit))
        }
        _ => policy_of(container, spec.restart_policy) != RestartPolicy::Never,
    };
    let ended_well = |container: &Container| {
        let exit = newest(container).and_then(|found| found.phase.exit());
        exit.is_some_and(|exit| !exit.failed())
    };
    let init_failed = spec
        .init_containers
        .iter()
        .any(|one| newest(one).is_some() && !ended_well(one) && !may_run_again(one));
    let ran = spec.containers.iter().any(|one| newest(one).is_some());
    init_failed || ran && !spec.containers.iter().any(may_run_again)
}

/// True if every container is one that runs once and has ended well.
fn nothing_to_start(snapshot: &PodSnapshot<'_>) -> bool {
    let spec = &snapshot.pod.spec;
    spec.containers.iter().all(|container| {
        let runs_once = policy_of(container, spec.restart_policy) == RestartPolicy::OnFailure;
        let newest = snapshot.observed.newest(&container.name);
        let ended_well = newest
            .and_then(|found| found.phase.exit())
            .is_some_and(|exit| exit.code == 0);
        runs_once && ended_well
    })
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
    // After a step back of the clock it counts as old. Clocks of two processes may differ a little.
    let is_past = newest.created_at <= after(now, RETRY_INITIAL);
    (unusable && is_past).then(|| after(newest.created_at, pause))
}
