//! The end of an inspection: the one place where observed state is written.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_base::{ErrorChain, Seq};
use rubelet_cri::CriError;
use rubelet_pod_plan::{ContainerPhase, ObservedPod};
use tokio::time::Instant;
use tracing::warn;

use super::{
    absorb::Absorbed,
    cause::InspectionCause,
    fingerprint::Fingerprint,
    handle::PlegHandle,
    inspect::{FinishedInspection, InspectionResult},
    inspection_slots::LatencyClass,
    lifecycle::{LifecycleKind, changes_between},
    observation::Observation,
    record::LifecycleEvent,
    task::PlegTask,
    tracked_pod::{InspectionRequest, PendingChanges, TrackedPod, UnsyncedEvent},
};

/// First wait after a failed inspection; doubles up to [`RETRY_MAX`].
const RETRY_INITIAL: Duration = Duration::from_millis(100);
/// Longest wait after a failed inspection.
const RETRY_MAX: Duration = Duration::from_secs(5);

impl PlegTask {
    /// Publishes the result of an inspection, or schedules a retry.
    pub(super) fn finish(&mut self, inspected: FinishedInspection) {
        match inspected.result {
            Some(Ok(seen)) => {
                self.publish(&inspected.tracked, inspected.began, inspected.request, seen);
            }
            Some(Err(error)) => self.retry_later(&inspected.tracked, inspected.request, &error),
            None => self.put_back(&inspected.tracked, inspected.request),
        }
    }

    /// Queues the pod for a slot without a time limit of one second.
    fn put_back(&self, tracked: &TrackedPod, request: InspectionRequest) {
        let priority = {
            let mut pending = tracked.pending();
            pending.inspection.give_up();
            pending.request.join(request);
            pending.latency = pending.latency.max(LatencyClass::Slow);
            pending.request.priority
        };
        self.handle.shared.enqueue(&tracked.uid, priority);
    }

    fn publish(
        &mut self,
        tracked: &TrackedPod,
        began: Seq,
        request: InspectionRequest,
        seen: InspectionResult,
    ) {
        let InspectionResult { pod, processes } = seen;
        let now = Instant::now();
        let old = Arc::clone(&tracked.observation.borrow().pod);
        // Held until the record is complete: a mark that comes meanwhile then finds the inspection
        // ended, and queues the pod.
        let mut pending = tracked.pending();
        // A mark that came after the first call may not be in this result: inspect again.
        let again = pending
            .inspection
            .end(began)
            .then_some(pending.request.priority);
        pending.failures = 0;
        if std::mem::take(&mut pending.latency) == LatencyClass::Hung {
            self.handle.shared.release_pod(&tracked.uid);
        }
        match pending.unsettled.absorb(&old, pod, now) {
            Absorbed::Withheld { until } => {
                pending.request.join(request);
                self.reinspect_at(tracked, &mut pending, until);
                drop(pending);
            }
            Absorbed::Published { pod, recheck_at } => {
                if let Some(at) = recheck_at {
                    self.reinspect_at(tracked, &mut pending, at);
                }
                // Identifiers learned during the inspection are not in its list; the next one needs
                // them.
                if again.is_none() {
                    pending.forget_learned();
                }
                pending.fingerprint = Fingerprint::of(&pod);
                self.process_watcher
                    .note(tracked, &mut pending, &pod, processes, now);
                if !Arc::ptr_eq(&pod, &old) {
                    self.handle.record_events(
                        tracked,
                        &mut pending,
                        began,
                        request,
                        &old,
                        &pod,
                        now,
                    );
                }
                drop(pending);
                self.handle.show(tracked, began, &old, pod);
            }
        }
        // Also if nothing is published: the mark may be an event by which an unknown state is known
        // again.
        if let Some(priority) = again {
            self.handle.shared.enqueue(&tracked.uid, priority);
        }
    }

    fn retry_later(&mut self, tracked: &TrackedPod, request: InspectionRequest, error: &CriError) {
        let mut pending = tracked.pending();
        pending.inspection.give_up();
        pending.request.join(request);
        // A failed call may have missed something that only a list can find.
        pending.needs_list = true;
        pending.failures = pending.failures.saturating_add(1);
        if error.is_deadline_exceeded() {
            pending.latency = LatencyClass::Hung;
        }
        let failures = pending.failures;
        let wait = RETRY_INITIAL
            .saturating_mul(1 << (failures - 1).min(6))
            .min(RETRY_MAX);
        self.reinspect_at(tracked, &mut pending, Instant::now() + wait);
        drop(pending);
        let text: Arc<str> = ErrorChain(error).to_string().into();
        if error.is_deadline_exceeded() {
            self.handle.shared.quarantine_pod(&tracked.uid, &text);
        }
        if failures == 1 && !error.is_unavailable() {
            warn!(pod = %tracked.uid, error = %text, "Inspection of a pod failed");
        }
        // The number stays, so that tasks which wait for a newer observation continue to wait.
        tracked
            .observation
            .send_modify(|observation| observation.error = Some(text));
    }
}

impl PendingChanges {
    /// Drops the identifiers and requests that the result of this inspection covers.
    fn forget_learned(&mut self) {
        self.needs_list = false;
        self.reread_all = false;
        self.learned_sandboxes.clear();
        self.learned_containers.clear();
        self.removed_containers.clear();
        self.changed_sandboxes.clear();
        self.reread.clear();
    }
}

impl PlegHandle {
    /// Updates what is known of all pods, then sends the observation to the pod's task.
    fn show(&self, tracked: &TrackedPod, seq: Seq, old: &Arc<ObservedPod>, pod: Arc<ObservedPod>) {
        self.shared.trace.note_ends(&tracked.uid, seq, old, &pod);
        if !Arc::ptr_eq(&pod, old) {
            self.shared.index.lock().update(&tracked.uid, old, &pod);
            self.shared.count(old, &pod);
            self.count_lost(tracked, old, &pod);
        }
        // Sent even if nothing changed: a task may wait for an observation that began after its
        // step.
        tracked.observation.send_replace(Observation {
            seq,
            pod,
            error: None,
        });
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "both observations and the cause of the change"
    )]
    fn record_events(
        &self,
        tracked: &TrackedPod,
        pending: &mut PendingChanges,
        seq: Seq,
        request: InspectionRequest,
        old: &ObservedPod,
        new: &ObservedPod,
        now: Instant,
    ) {
        let wall = self.shared.clock.now();
        let event = |kind, container: Option<&str>, id: &str| LifecycleEvent {
            number: 0,
            at: wall,
            uid: tracked.uid.clone(),
            pod: tracked.name.get().cloned(),
            kind,
            container: container.map(Into::into),
            id: id.into(),
            cause: request.cause.unwrap_or(InspectionCause::Recheck),
            from_stamp: stamp(new, kind, id).map(|at| since(at, wall)),
            from_event: request.event_at.map(|at| now.saturating_duration_since(at)),
            to_start: None,
            to_sync: None,
        };
        let mut events: Vec<_> = changes_between(old, new)
            .into_iter()
            .map(|what| event(what.kind, what.name, what.id))
            .collect();
        if events.is_empty() {
            events.push(event(LifecycleKind::PodSync, None, ""));
        }
        for event in events {
            if let (LifecycleKind::Died, Some(_), Some(took)) =
                (event.kind, &event.container, event.from_stamp)
            {
                let seconds = took.as_secs_f64();
                self.shared.metrics.pleg.exit_to_delivery.observe(seconds);
            }
            pending.unsynced.push(UnsyncedEvent {
                number: self.shared.record.add(event),
                seq,
                delivered: now,
                event_at: request.event_at,
                begun: false,
            });
        }
    }
}

/// The runtime's timestamp of a lifecycle event.
fn stamp(pod: &ObservedPod, kind: LifecycleKind, id: &str) -> Option<Timestamp> {
    let found = pod
        .containers
        .iter()
        .find(|found| found.id.as_str() == id)?;
    match (&found.phase, kind) {
        (ContainerPhase::Running { started_at }, LifecycleKind::Started) => Some(*started_at),
        (ContainerPhase::Exited(exit), LifecycleKind::Died) => Some(exit.finished_at),
        _ => None,
    }
}

fn since(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}
