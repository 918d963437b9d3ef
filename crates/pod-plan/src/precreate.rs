//! Containers that were made ahead: between the kernel's word that a process is gone and the
//! runtime's that its container has ended. They count as not there, and so restart counts,
//! back-offs and statuses are what they would be without them. Where the plan then starts an
//! instance, the one that was made for it is started; where it starts none, what was made goes.

use std::time::Duration;

use jiff::Timestamp;

use crate::{
    after, definition,
    history::History,
    observed::{ContainerPhase, ObservedContainer, ObservedPod},
    snapshot::{PodSnapshot, Target},
    step::{DeadContainer, PodPlan, Step},
    why::Why,
};

/// A container that is older than this may hold an outdated environment.
const STALE: Duration = Duration::from_secs(60);

/// The plan that `rest` makes for the pod without such containers, and what it means for them.
pub(crate) fn plan(
    snapshot: &PodSnapshot<'_>,
    now: Timestamp,
    rest: impl Fn(&PodSnapshot<'_>, Timestamp) -> PodPlan,
) -> PodPlan {
    let observed = snapshot.observed;
    let is_ahead = |found: &ObservedContainer| is_ahead(found, observed, snapshot.history);
    if !observed.containers.iter().any(is_ahead) {
        let mut plan = rest(snapshot, now);
        plan.steps.retain(|step| match step {
            Step::PrecreateContainer { name, before, .. } => {
                !snapshot.history.tried_precreate(name, before)
            }
            _ => true,
        });
        return plan;
    }
    let (made, others): (Vec<_>, Vec<_>) = observed.containers.iter().cloned().partition(is_ahead);
    let without = ObservedPod {
        sandboxes: observed.sandboxes.clone(),
        containers: others,
    };
    let without = PodSnapshot {
        observed: &without,
        ..*snapshot
    };
    let mut plan = rest(&without, now);
    let dropped: Vec<_> = made
        .into_iter()
        .filter(|made| !take_up(snapshot, &mut plan.steps, made, now))
        .collect();
    plan.steps
        .retain(|step| !matches!(step, Step::PrecreateContainer { .. }));
    let waits = snapshot.history.teardown.as_ref();
    let waits = waits.is_some_and(|failure| failure.waits_until(now).is_some());
    if !dropped.is_empty() && !waits {
        drop_all(snapshot, &mut plan, &dropped);
    }
    plan
}

/// True for a container that was made for the time after another one whose record is there, and
/// whose start does not count yet.
fn is_ahead(found: &ObservedContainer, observed: &ObservedPod, history: &History) -> bool {
    let Some(before) = &found.ahead_of else {
        return false;
    };
    found.phase == ContainerPhase::Created
        && !history.precreated_counts(&found.name, &found.id)
        && observed.containers.iter().any(|other| other.id == *before)
}

/// Makes the step that starts this instance start the precreated container. False if there is no
/// such step, and none that would create it.
fn take_up(
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
        } => *sandbox == found.sandbox && Some(before) == found.ahead_of.as_ref(),
        _ => false,
    });
    match step.filter(|_| usable) {
        Some(Step::StartContainer { made, .. }) if made.is_none() => {
            *made = Some(found.id.clone());
            true
        }
        Some(Step::PrecreateContainer { .. }) => true,
        _ => false,
    }
}

/// Removes what was made for nothing, before anything that takes its number is made.
fn drop_all(snapshot: &PodSnapshot<'_>, plan: &mut PodPlan, dropped: &[ObservedContainer]) {
    // A pod that ends removes all its records once everything has stopped.
    if matches!(snapshot.target, Target::Remove { .. }) && !snapshot.observed.is_stopped() {
        return;
    }
    let names = dropped.iter().map(|found| found.name.clone());
    plan.why.retain(|why| *why != Why::Converged);
    plan.why.extend(names.map(Why::DiscardsPrecreated));
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
        // It removes all other records; one that is left would make the pod look as if it were
        // starting.
        Step::NoteRestart { .. } => true,
        _ => false,
    };
    let place = plan.steps.iter().position(takes_its_place);
    let place = place.unwrap_or(plan.steps.len());
    plan.steps
        .insert(place, Step::RemoveContainers(dead.collect()));
}
