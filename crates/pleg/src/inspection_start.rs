//! The start of an inspection: plans its reads, and runs it within its slot.

use std::{pin::pin, sync::Arc};

use rubelet_base::{PodUid, Seq};
use tokio::time::{Instant, timeout};

use super::{
    handle::{PlegHandle, PlegShared},
    inspect::{FinishedInspection, InspectionPlan, KnownContainer, inspect},
    queue::{InspectionOutcome, LatencyClass, SLOW},
    task::PlegTask,
    tracked_pod::{InspectionRequest, TrackedPod},
};

impl PlegTask {
    /// Starts the inspections of all pods that are ready and have a slot.
    pub(super) fn start_inspections(&mut self) {
        while let Some((tracked, slot)) = self.handle.shared.next_ready() {
            self.start_inspection(tracked, slot);
        }
    }

    fn start_inspection(&mut self, tracked: Arc<TrackedPod>, slot: LatencyClass) {
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        self.inspections.spawn(async move {
            let (began, request, plan) = plan_inspection(&handle, &tracked);
            let cause = request
                .cause
                .map_or("recheck", super::InspectionCause::as_str);
            let (metrics, at) = (&handle.shared.metrics.pleg, Instant::now());
            metrics.inspection(cause);
            let look = inspect(&runtime, &tracked.uid, plan);
            let result = handle.shared.run_in_slot(&tracked.uid, slot, look).await;
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

impl PlegShared {
    /// The next pod that is ready, and the class of its slot.
    pub(super) fn next_ready(&self) -> Option<(Arc<TrackedPod>, LatencyClass)> {
        // Both are locked, so that `forget` finds either no inspection of the pod, or one with this
        // record: its outcome must not count for a new pod with the same UID.
        let (pods, mut queue) = (self.pods.lock(), self.queue.lock());
        let now = Instant::now();
        loop {
            let (uid, slot) = queue.get(now)?;
            if let Some(tracked) = pods.get(&uid) {
                return Some((Arc::clone(tracked), slot));
            }
            // A cause that came late.
            queue.forget(&uid);
            queue.done(&uid, InspectionOutcome::Aborted, now);
        }
    }

    /// Runs the inspection of the pod; `None` if it becomes slow and no slot for slow ones is free.
    async fn run_in_slot<T>(
        &self,
        uid: &PodUid,
        slot: LatencyClass,
        inspection: impl Future<Output = T>,
    ) -> Option<T> {
        let mut inspection = pin!(inspection);
        if slot == LatencyClass::Fast {
            if let Ok(done) = timeout(SLOW, &mut inspection).await {
                return Some(done);
            }
            // Without a slot the inspection is dropped, which cancels calls that only read.
            if !self.queue.lock().become_slow(uid) {
                return None;
            }
            // The fast slot is free.
            self.wake.notify_one();
        }
        Some(inspection.await)
    }
}

/// Takes the number and the request of an inspection, and plans its reads.
fn plan_inspection(
    handle: &PlegHandle,
    tracked: &TrackedPod,
) -> (Seq, InspectionRequest, InspectionPlan) {
    let mut pending = tracked.pending();
    // Taken under the lock, and before anything is read: a mark that is not part of this plan has a
    // larger number.
    let began = handle.now();
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

#[cfg(test)]
mod tests;
