//! Interrupted starts: the agent died, or its call timed out, while the runtime was starting a
//! container. The container never ran, so its record is removed and does not count: no restart is
//! counted, and a pod with the restart policy Never has not failed.
//!
//! containerd can't always remove such a record. It then stays and is ignored, except that the next
//! instance gets a higher restart count, because two instances can't have the same.

use jiff::Timestamp;

use crate::{
    actions::{self, Actions},
    observed::{Exit, ObservedContainer, ObservedPod},
    probe,
    reason::PlanReason,
    snapshot::{PodSnapshot, Target},
    status,
    step::{DeadContainer, PodPlan, Step},
};

/// The plan for a pod with records of interrupted starts; `None` if it has none.
pub(crate) fn plan(snapshot: &PodSnapshot<'_>, now: Timestamp) -> Option<PodPlan> {
    let ended = snapshot
        .previous
        .is_some_and(|status| status.phase.is_terminal());
    let observed = snapshot.observed;
    // A pod that has ended, or terminates, starts nothing for which these records would count: its
    // removal takes them along.
    if ended
        || snapshot.target != Target::Run
        || !observed.containers.iter().any(is_interrupted_start)
    {
        return None;
    }
    let (broken, whole): (Vec<_>, Vec<_>) = observed
        .containers
        .iter()
        .cloned()
        .partition(is_interrupted_start);
    let observed = ObservedPod {
        sandboxes: observed.sandboxes.clone(),
        containers: whole,
    };
    let without = PodSnapshot {
        observed: &observed,
        ..*snapshot
    };
    // The failure does not say which container it was of, so that of any removal or stop counts. The
    // records are removed again once one of them has succeeded.
    let actions = match snapshot.history.teardown {
        None => remove(broken),
        Some(_) => plan_without(&without, &broken, now),
    };
    let status = status::generate(&without, &actions, now);
    Some(PodPlan {
        probes: probe::targets(&without, actions.ends_the_pod(&status)),
        status,
        steps: actions.steps,
        wake_at: actions.wake_at,
        why: actions.why,
        finished: false,
    })
}

/// Removes the records, and does nothing else: before the next observation shows that they are gone,
/// the number of the next instance could be that of one of them.
fn remove(broken: Vec<ObservedContainer>) -> Actions {
    let why = broken.iter().map(|found| found.name.clone());
    Actions {
        why: why.map(PlanReason::StartInterrupted).collect(),
        steps: vec![Step::RemoveContainers(
            broken
                .into_iter()
                .map(|found| DeadContainer {
                    name: found.name,
                    id: found.id,
                    restart_count: found.restart_count,
                    // Empty: no process wrote it. One that stays counts as one more restart.
                    keep_log: false,
                })
                .collect(),
        )],
        ..Actions::default()
    }
}

/// Decides after the removal of the records failed: without them, and with restart counts above
/// theirs.
fn plan_without(
    without: &PodSnapshot<'_>,
    broken: &[ObservedContainer],
    now: Timestamp,
) -> Actions {
    let mut actions = actions::decide(without, now);
    for step in &mut actions.steps {
        if let Step::StartContainer {
            name,
            restart_count,
            ..
        } = step
        {
            let taken = broken.iter().filter(|found| found.name == *name);
            let next = taken.map(|found| found.restart_count.saturating_add(1));
            *restart_count = next.max().max(*restart_count);
        }
    }
    actions
}

fn is_interrupted_start(found: &ObservedContainer) -> bool {
    found.phase.exit().is_some_and(Exit::start_was_interrupted)
}
