//! The start of an inspection: assigns slots to pods, and plans the reads.

use std::{sync::Arc, time::Duration};

use rubelet_base::{PodUid, Seq};
use tokio::time::Instant;

use super::{
    handle::PlegHandle,
    inspect::{FinishedInspection, InspectionPlan, KnownContainer, inspect},
    inspection_slots::InspectionSlot,
    task::PlegTask,
    tracked_pod::{InspectionRequest, TrackedPod},
};

/// Shortest time between two inspections of a pod while its task executes steps.
const WHILE_BUSY: Duration = Duration::from_secs(1);

impl PlegTask {
    pub(super) fn start_inspections(&mut self) {
        let now = Instant::now();
        for (uid, priority) in self.handle.shared.take_queue() {
            let tracked = self.handle.shared.known(&uid);
            if let Some(latency) = tracked.map(|tracked| tracked.pending().latency) {
                self.slots.push(uid, latency, priority, now);
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
            let mut pending = tracked.pending();
            // The pod was marked after the queue was read and before the claim. The inspection in
            // progress takes its number after that mark, so it sees the cause.
            if pending.inspection.is_claimed() {
                return;
            }
            // Each step of a task marks its pod. One inspection after the last step shows the
            // effects of all: `sync_ended` queues it at once.
            if let Some(began) = pending.began_at.filter(|_| pending.busy) {
                let next = began + WHILE_BUSY;
                if next > Instant::now() {
                    pending.held = true;
                    self.reinspect_at(&tracked, &mut pending, next);
                    return;
                }
            }
            pending.inspection.claim();
            pending.held = false;
            // The result of this inspection decides when the next one is due.
            if let Some(at) = pending.reinspect_at.take() {
                self.retries.remove(&(at, tracked.uid.clone()));
            }
        }
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        self.inspections.spawn(async move {
            let (began, request, plan) = plan_inspection(&handle, &tracked);
            let cause = request
                .cause
                .map_or("recheck", super::InspectionCause::as_str);
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

/// Takes the number and the request of an inspection, and plans its reads.
fn plan_inspection(
    handle: &PlegHandle,
    tracked: &TrackedPod,
) -> (Seq, InspectionRequest, InspectionPlan) {
    let mut pending = tracked.pending();
    // Taken under the lock: a mark that is not part of this plan has a larger number.
    let began = pending.inspection.begin(&handle.shared.seq);
    pending.began_at = Some(Instant::now());
    let request = std::mem::take(&mut pending.request);
    let seen = tracked.observation.borrow();
    let mut plan = InspectionPlan {
        // An event may name one container of many of a pod that was never inspected.
        list: pending.needs_list || seen.seq == Seq::ZERO,
        ..InspectionPlan::default()
    };
    for sandbox in &seen.pod.sandboxes {
        let id = &sandbox.id;
        // A sandbox that is not ready does not become ready again: its record costs no call.
        let open = sandbox.ready
            || pending.reread_all
            || pending.changed_sandboxes.contains(id)
            || pending.unsettled.rechecks.rereads_sandbox(id);
        let record = (!open).then(|| sandbox.clone());
        plan.sandboxes.insert(id.clone(), record);
    }
    for found in &seen.pod.containers {
        let id = &found.id;
        // The runtime has confirmed the removal. If the container still exists, a list shows it.
        if pending.removed_containers.contains(id) {
            continue;
        }
        let open = found.phase.exit().is_none()
            || pending.reread_all
            || pending.reread.contains(id)
            || pending.unsettled.oom_reasons.rereads(id)
            || pending.unsettled.rechecks.rereads_container(id);
        let known = KnownContainer {
            sandbox: found.sandbox.clone(),
            record: (!open).then(|| found.clone()),
            with_process: pending.unsettled.kernel_exits.needs_pid(found),
            ended: pending.unsettled.kernel_exits.end_of(found),
        };
        plan.containers.insert(id.clone(), known);
    }
    // Only those without a record: a final record of the same identifier stays final.
    for id in &pending.learned_sandboxes {
        plan.sandboxes.entry(id.clone()).or_default();
    }
    for (id, sandbox) in &pending.learned_containers {
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
