//! Decisions for a pod whose sandbox is missing or must be replaced.

use jiff::Timestamp;
use rubelet_api::{container::Container, pod::RestartPolicy};

use super::{
    builder::ActionsBuilder,
    init::init_exit_code,
    restart::{policy_of, should_restart},
    stop,
};
use crate::{
    after,
    history::{RETRY_INITIAL, RETRY_MAX},
    observed::{ContainerPhase, ObservedPod},
    reason::{KillCause, PlanReason},
    snapshot::PodSnapshot,
    step::Step,
};

pub(super) fn decide(builder: &mut ActionsBuilder<'_>, attempt: u32, why: PlanReason) {
    let snapshot = builder.snapshot;
    let (pod, observed) = (snapshot.pod, snapshot.observed);
    builder.why(why);
    builder.actions.sandbox_unusable = true;
    let never_again = attempt != 0 && never_again(snapshot);
    let over = never_again || nothing_to_start(snapshot);
    builder.actions.never_restarts = over;
    let cause = if over {
        builder.actions.why = vec![PlanReason::PodCompleted];
        KillCause::PodStops
    } else {
        KillCause::SandboxReplaced
    };
    let grace = pod.spec.termination_grace_period;
    stop::stop_pod(snapshot, &mut builder.actions, grace, cause);
    if over {
        return;
    }
    let failed = snapshot.history.sandbox.as_ref();
    let failed = failed.and_then(|failure| failure.waits_until(builder.now));
    let retry_at = failed.max(short_lived(observed, builder.now));
    if let Some(retry_at) = retry_at.filter(|at| *at > builder.now) {
        builder.why(PlanReason::SandboxRetry(retry_at));
        builder.actions.wake_by(retry_at);
        return;
    }
    // A sandbox that is not ready may still hold its address.
    let dead = observed.sandboxes.first().filter(|newest| !newest.ready);
    if let Some(dead) = dead {
        let stop = Step::StopSandboxes(vec![dead.id.clone()]);
        builder.actions.steps.push(stop);
    }
    builder.actions.steps.push(Step::CreateSandbox { attempt });
}

/// True for a pod that is not started again once its sandbox is lost: its policy is Never, and a
/// container that may not run twice has run. The kubelet only checks the pod's policy and whether
/// any record exists; pods whose containers have their own policy, or that only started their
/// sidecars, then stay without containers forever.
fn never_again(snapshot: &PodSnapshot<'_>) -> bool {
    let spec = &snapshot.pod.spec;
    let newest = |container: &Container| snapshot.observed.newest(&container.name);
    let may_run_again = |container: &Container| match newest(container).map(|found| &found.phase) {
        Some(ContainerPhase::Exited(exit)) => {
            should_restart(container, spec.restart_policy, init_exit_code(exit))
        }
        _ => policy_of(container, spec.restart_policy) != RestartPolicy::Never,
    };
    let succeeded = |container: &Container| {
        let exit = newest(container).and_then(|found| found.phase.exit());
        exit.is_some_and(|exit| !exit.failed())
    };
    let init_failed = spec
        .init_containers
        .iter()
        .any(|one| newest(one).is_some() && !succeeded(one) && !may_run_again(one));
    let ran = spec.containers.iter().any(|one| newest(one).is_some());
    init_failed || ran && !spec.containers.iter().any(may_run_again)
}

/// True if every container has the policy OnFailure and has succeeded.
fn nothing_to_start(snapshot: &PodSnapshot<'_>) -> bool {
    let spec = &snapshot.pod.spec;
    spec.containers.iter().all(|container| {
        let runs_once = policy_of(container, spec.restart_policy) == RestartPolicy::OnFailure;
        let newest = snapshot.observed.newest(&container.name);
        let succeeded = newest
            .and_then(|found| found.phase.exit())
            .is_some_and(|exit| exit.code == 0);
        runs_once && succeeded
    })
}

/// When a sandbox that became unusable soon after its creation may be replaced: the next one would
/// most likely fail, too. Does not apply to a changed definition.
fn short_lived(observed: &ObservedPod, now: Timestamp) -> Option<Timestamp> {
    let newest = observed.sandboxes.first()?;
    let unusable = !newest.ready || !newest.host_network && newest.ips.is_empty();
    let pause = if newest.attempt < 3 {
        RETRY_INITIAL
    } else {
        RETRY_MAX
    };
    // If the clock was set back, the sandbox counts as old. Clocks of two processes may differ.
    let is_past = newest.created_at <= after(now, RETRY_INITIAL);
    (unusable && is_past).then(|| after(newest.created_at, pause))
}
