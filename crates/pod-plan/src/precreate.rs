//! Precreated containers: created after the kernel reported the exit of a process, before the
//! runtime reported the exit of its container. The plan is made without them, so restart counts,
//! back-offs and statuses are the same as without precreation. If the plan then starts an instance,
//! the precreated one is started; if it starts none, the precreated one is removed.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    after, definition,
    history::History,
    observed::{ContainerPhase, ObservedContainer, ObservedPod},
    reason::PlanReason,
    snapshot::{PodSnapshot, Target},
    step::{DeadContainer, PodPlan, Step},
};

/// A precreated container older than this may have an outdated environment.
const STALE: Duration = Duration::from_secs(60);

/// The plan that `rest` makes for the pod without precreated containers, with the steps that start
/// or remove those.
pub(crate) fn plan(
    snapshot: &PodSnapshot<'_>,
    now: Timestamp,
    rest: impl Fn(&PodSnapshot<'_>, Timestamp) -> PodPlan,
) -> PodPlan {
    let observed = snapshot.observed;
    let is_precreated =
        |found: &ObservedContainer| is_precreated(found, observed, snapshot.history);
    if !observed.containers.iter().any(is_precreated) {
        let mut plan = rest(snapshot, now);
        plan.steps.retain(|step| match step {
            Step::PrecreateContainer { name, before, .. } => {
                !snapshot.history.tried_precreate(name, before)
            }
            _ => true,
        });
        return plan;
    }
    let (precreated, others): (Vec<_>, Vec<_>) =
        observed.containers.iter().cloned().partition(is_precreated);
    let without = ObservedPod {
        sandboxes: observed.sandboxes.clone(),
        containers: others,
    };
    let without = PodSnapshot {
        observed: &without,
        ..*snapshot
    };
    let mut plan = rest(&without, now);
    let dropped: Vec<_> = precreated
        .into_iter()
        .filter(|found| !start_precreated(snapshot, &mut plan.steps, found, now))
        .collect();
    plan.steps
        .retain(|step| !matches!(step, Step::PrecreateContainer { .. }));
    let waits = snapshot.history.teardown.as_ref();
    let waits = waits.is_some_and(|failure| failure.waits_until(now).is_some());
    if !dropped.is_empty() && !waits {
        remove_precreated(snapshot, &mut plan, &dropped);
    }
    plan
}

/// True for a precreated container whose previous instance still has a record, and whose start does
/// not count yet.
fn is_precreated(found: &ObservedContainer, observed: &ObservedPod, history: &History) -> bool {
    let Some(before) = &found.precreated_after else {
        return false;
    };
    found.phase == ContainerPhase::Created
        && !history.precreated_counts(&found.name, &found.id)
        && observed.containers.iter().any(|other| other.id == *before)
}

/// Makes the step that starts this instance start the precreated container. False if no step starts
/// or precreates this instance.
fn start_precreated(
    snapshot: &PodSnapshot<'_>,
    steps: &mut [Step],
    found: &ObservedContainer,
    now: Timestamp,
) -> bool {
    let wanted = snapshot.pod.spec.container(&found.name);
    // After an edit, or if its environment may be outdated, it is removed and created again.
    let usable = wanted.is_some_and(|wanted| !definition::container_changed(wanted, found))
        && now <= after(found.created_at, STALE);
    let step = steps.iter_mut().find(|step| match step {
        Step::StartContainer {
            name,
            sandbox,
            restart_count,
            ..
        } => {
            *name == found.name
                && *sandbox == found.sandbox
                && *restart_count == Some(found.restart_count)
        }
        Step::PrecreateContainer {
            sandbox, before, ..
        } => *sandbox == found.sandbox && Some(before) == found.precreated_after.as_ref(),
        _ => false,
    });
    match step.filter(|_| usable) {
        Some(Step::StartContainer { precreated, .. }) if precreated.is_none() => {
            *precreated = Some(found.id.clone());
            true
        }
        Some(Step::PrecreateContainer { .. }) => true,
        _ => false,
    }
}

/// Removes precreated containers that will not be started, before a step that reuses their restart
/// count.
fn remove_precreated(
    snapshot: &PodSnapshot<'_>,
    plan: &mut PodPlan,
    dropped: &[ObservedContainer],
) {
    // A terminating pod removes all its records once it is stopped.
    if matches!(snapshot.target, Target::Remove { .. }) && !snapshot.observed.is_stopped() {
        return;
    }
    let names = dropped.iter().map(|found| found.name.clone());
    plan.why.retain(|why| *why != PlanReason::Converged);
    plan.why.extend(names.map(PlanReason::DiscardsPrecreated));
    plan.finished = false;
    plan.steps.retain(|step| *step != Step::CleanUp);
    let dead = dropped.iter().map(|found| DeadContainer {
        name: found.name.clone(),
        id: found.id.clone(),
        restart_count: found.restart_count,
        keep_log: false,
    });
    let takes_its_place = |step: &Step| match step {
        Step::StartContainer { name, .. } => dropped.iter().any(|found| found.name == *name),
        // It removes all other records: a remaining one would make the pod look as if it were
        // starting.
        Step::NoteRestart { .. } => true,
        _ => false,
    };
    let place = plan.steps.iter().position(takes_its_place);
    let place = place.unwrap_or(plan.steps.len());
    plan.steps
        .insert(place, Step::RemoveContainers(dead.collect()));
}
