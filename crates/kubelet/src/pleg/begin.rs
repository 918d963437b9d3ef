//! What an inspection has to look at.

use rubelet_base::Seq;
use tokio::time::Instant;

use super::{
    cell::{PodCell, Request},
    handle::PlegHandle,
    inspect::{InspectionPlan, KnownContainer},
};

/// Takes the number of an inspection, what asked for it, and what it has to look at.
pub(super) fn begin(handle: &PlegHandle, cell: &PodCell) -> (Seq, Request, InspectionPlan) {
    let mut marks = cell.marks();
    // Taken under the lock: a mark that this plan does not hold has a larger number.
    let began = marks.turn.begin(&handle.shared.seq);
    marks.began_at = Some(Instant::now());
    let request = std::mem::take(&mut marks.request);
    let seen = cell.observation.borrow();
    let mut plan = InspectionPlan {
        // Of a pod that was never looked at an event may name one container of many.
        list: marks.needs_list || seen.seq == Seq::ZERO,
        ..InspectionPlan::default()
    };
    for sandbox in &seen.pod.sandboxes {
        let id = &sandbox.id;
        let open = sandbox.ready
            || marks.reread_all
            || marks.changed_sandboxes.contains(id)
            || marks.rechecks.doubts_sandbox(id);
        let record = (!open).then(|| sandbox.clone());
        plan.sandboxes.insert(id.clone(), record);
    }
    for found in &seen.pod.containers {
        let id = &found.id;
        if marks.removed_containers.contains(id) {
            continue;
        }
        let open = found.phase.exit().is_none()
            || marks.reread_all
            || marks.reread.contains(id)
            || marks.late_reasons.doubts(id)
            || marks.rechecks.doubts_container(id);
        let known = KnownContainer {
            sandbox: found.sandbox.clone(),
            record: (!open).then(|| found.clone()),
            with_process: marks.kernel.asks(found),
        };
        plan.containers.insert(id.clone(), known);
    }
    for id in &marks.learned_sandboxes {
        plan.sandboxes.entry(id.clone()).or_default();
    }
    for (id, sandbox) in &marks.learned_containers {
        let known = || KnownContainer {
            sandbox: sandbox.clone(),
            record: None,
            with_process: false,
        };
        plan.containers.entry(id.clone()).or_insert_with(known);
    }
    (began, request, plan)
}
