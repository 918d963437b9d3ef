//! The plan of one pod: the steps, the status, when to plan again, and why.

use jiff::Timestamp;

use crate::{
    actions, interrupted_start, kernel_exit, precreate, probe,
    snapshot::{PodSnapshot, Target},
    status,
    step::{PodPlan, Step},
};

/// Compares the desired with the observed state.
#[must_use]
pub fn plan(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodPlan {
    precreate::plan(snapshot, now, |snapshot, now| {
        kernel_exit::plan(snapshot, now, plan_by_runtime)
    })
}

/// The plan for a pod without precreated containers, from the runtime's reports.
fn plan_by_runtime(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodPlan {
    if let Some(plan) = interrupted_start::plan(snapshot, now) {
        return plan;
    }
    let mut actions = actions::decide(snapshot, now);
    let status = status::generate(snapshot, &actions, now);
    let ended = snapshot.target == Target::Run && status.phase.is_terminal();
    if ended && actions.steps.iter().any(Step::creates_something) {
        // The observed state makes the phase terminal, though no container record is left that
        // would keep the pod from starting again.
        let over = PodSnapshot {
            previous: Some(&status),
            ..*snapshot
        };
        actions = actions::decide(&over, now);
    }
    if ended {
        actions::remove_volumes(snapshot, &mut actions, now);
    }
    PodPlan {
        probes: probe::targets(snapshot, actions.ends_the_pod(&status)),
        steps: actions.steps,
        status,
        wake_at: actions.wake_at,
        why: actions.why,
        finished: actions.finished,
    }
}
