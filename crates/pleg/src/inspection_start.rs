//! The start of an inspection: which pods get a slot, and what has to be read.

use std::{sync::Arc, time::Duration};

use rubelet_base::{PodUid, Seq};
use tokio::time::Instant;

use super::{
    handle::PlegHandle,
    inspect::{FinishedInspection, InspectionPlan, KnownContainer, inspect},
    inspection_slots::InspectionSlot,
    task::PlegTask,
    tracked_pod::{Request, TrackedPod},
};

/// A pod whose task is at work is inspected this often at most.
const WHILE_BUSY: Duration = Duration::from_secs(1);

impl PlegTask {
    pub(super) fn start_inspections(&mut self) {
        let now = Instant::now();
        for (uid, urgency) in self.handle.shared.take_queue() {
            let tracked = self.handle.shared.known(&uid);
            if let Some(pace) = tracked.map(|tracked| tracked.marks().pace) {
                self.slots.push(uid, pace, urgency, now);
            }
        }
        while let Some((uid, slot)) = self.slots.next() {
            self.start_inspection(&uid, slot);
        }
    }

    fn start_inspection(&mut self, uid: &PodUid, slot: InspectionSlot) {
        let Some(tracked) = self.handle.shared.known(uid) else {
            return;
        };
        {
            let mut marks = tracked.marks();
            // Marked after the queue was read and before the claim. The inspection under way takes
            // its number after that mark, and so it sees the cause.
            if marks.inspection.is_claimed() {
                return;
            }
            // Each step of a task marks its pod. One inspection behind them shows all of them:
            // `sync_ended` queues it at once.
            if let Some(began) = marks.began_at.filter(|_| marks.busy) {
                let next = began + WHILE_BUSY;
                if next > Instant::now() {
                    marks.held = true;
                    self.reinspect_at(&tracked, &mut marks, next);
                    return;
                }
            }
            marks.inspection.claim();
            marks.held = false;
            // What this one sees decides on the next.
            if let Some(at) = marks.reinspect_at.take() {
                self.retries.remove(&(at, tracked.uid.clone()));
            }
        }
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        self.inspections.spawn(async move {
            let (began, request, plan) = plan_inspection(&handle, &tracked);
            let cause = request.cause.map_or("recheck", super::Cause::as_str);
            let (metrics, at) = (&handle.shared.metrics.pleg, Instant::now());
            metrics.inspection(cause);
            let look = inspect(&runtime, &tracked.uid, plan);
            let result = slot.wait(look, || handle.shared.wake.notify_one()).await;
            if let Some(result) = &result {
                let took = at.elapsed().as_secs_f64();
                metrics.pod_relist_duration.observe(took);
                handle.note_answer(result.as_ref().err());
            }
            FinishedInspection {
                tracked,
                began,
                request,
                result,
            }
        });
    }
}

/// Takes the number of an inspection, its cause, and what it has to read.
fn plan_inspection(handle: &PlegHandle, tracked: &TrackedPod) -> (Seq, Request, InspectionPlan) {
    let mut marks = tracked.marks();
    // Taken under the lock: a mark that this plan does not hold has a larger number.
    let began = marks.inspection.begin(&handle.shared.seq);
    marks.began_at = Some(Instant::now());
    let request = std::mem::take(&mut marks.request);
    let seen = tracked.observation.borrow();
    let mut plan = InspectionPlan {
        // An event may name one container of many of a pod that was never inspected.
        list: marks.needs_list || seen.seq == Seq::ZERO,
        ..InspectionPlan::default()
    };
    for sandbox in &seen.pod.sandboxes {
        let id = &sandbox.id;
        // A sandbox that is not ready does not become ready again: its record costs no call.
        let open = sandbox.ready
            || marks.reread_all
            || marks.changed_sandboxes.contains(id)
            || marks.rechecks.rereads_sandbox(id);
        let record = (!open).then(|| sandbox.clone());
        plan.sandboxes.insert(id.clone(), record);
    }
    for found in &seen.pod.containers {
        let id = &found.id;
        // The runtime has confirmed the removal. If the container is there all the same, a list
        // shows it.
        if marks.removed_containers.contains(id) {
            continue;
        }
        let open = found.phase.exit().is_none()
            || marks.reread_all
            || marks.reread.contains(id)
            || marks.late_reasons.rereads(id)
            || marks.rechecks.rereads_container(id);
        let known = KnownContainer {
            sandbox: found.sandbox.clone(),
            record: (!open).then(|| found.clone()),
            with_process: marks.kernel.asks(found),
            ended: marks.kernel.end_of(found),
        };
        plan.containers.insert(id.clone(), known);
    }
    // Only those without a record: a final record of the same identifier stays final.
    for id in &marks.learned_sandboxes {
        plan.sandboxes.entry(id.clone()).or_default();
    }
    for (id, sandbox) in &marks.learned_containers {
        let known = || KnownContainer {
            sandbox: sandbox.clone(),
            record: None,
            with_process: false,
            ended: None,
        };
        plan.containers.entry(id.clone()).or_insert_with(known);
    }
    (began, request, plan)
}
