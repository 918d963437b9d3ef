//! Starts that were broken off: the agent died, or lost patience, while the runtime was starting a
//! container. The container never ran, and so its record is removed and counts as if it had never
//! been there: no restart is counted, and a pod that never restarts has not failed.

use jiff::Timestamp;

use crate::{
    actions::Actions,
    observed::{Exit, ObservedContainer, ObservedPod},
    plan::{DeadContainer, PodPlan, PodSnapshot, Step, Target},
    status,
    why::Why,
};

/// The plan that removes such records; `None` if there are none.
pub(crate) fn clear(snapshot: &PodSnapshot<'_>, now: Timestamp) -> Option<PodPlan> {
    let ended = snapshot
        .previous
        .is_some_and(|status| status.phase.is_terminal());
    let observed = snapshot.observed;
    if ended || snapshot.target != Target::Run || !observed.containers.iter().any(is_broken_off) {
        return None;
    }
    let (broken, whole): (Vec<_>, Vec<_>) =
        observed.containers.iter().cloned().partition(is_broken_off);
    let mut actions = Actions {
        why: broken
            .iter()
            .map(|found| Why::StartBrokenOff(found.name.clone()))
            .collect(),
        ..Actions::default()
    };
    match &snapshot.history.teardown {
        Some(failure) if failure.retry_at() > now => actions.wake_at = Some(failure.retry_at()),
        _ => {
            let records = broken.into_iter().map(|found| DeadContainer {
                name: found.name,
                id: found.id,
                restart_count: found.restart_count,
            });
            actions.steps = vec![Step::RemoveContainers(records.collect())];
        }
    }
    let observed = ObservedPod {
        sandboxes: observed.sandboxes.clone(),
        containers: whole,
    };
    let without = PodSnapshot {
        observed: &observed,
        ..*snapshot
    };
    Some(PodPlan {
        status: status::generate(&without, &actions, now),
        steps: actions.steps,
        wake_at: actions.wake_at,
        why: actions.why,
        finished: false,
    })
}

fn is_broken_off(found: &ObservedContainer) -> bool {
    found.phase.exit().is_some_and(Exit::start_was_broken_off)
}
