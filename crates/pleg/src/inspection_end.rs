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
    lifecycle::{LifecycleKind, changes_between},
    observation::Observation,
    queue::InspectionOutcome,
    record::LifecycleEvent,
    task::PlegTask,
    tracked_pod::{InspectionRequest, PendingChanges, TrackedPod, UnsyncedEvent},
};

/// First wait after a failed inspection; doubles up to [`RETRY_MAX`].
const RETRY_INITIAL: Duration = Duration::from_millis(100);
/// Longest wait after a failed inspection.
const RETRY_MAX: Duration = Duration::from_secs(5);

impl PlegTask {
    /// Publishes the result of an inspection, or has it repeated.
    pub(super) fn finish(&mut self, inspected: FinishedInspection) {
        let FinishedInspection {
            tracked,
            began,
            request,
            result,
        } = inspected;
        let known = self.handle.shared.known(&tracked.uid);
        let is_known = known.is_some_and(|known| Arc::ptr_eq(&known, &tracked));
        let outcome = match result {
            // The pod was removed meanwhile. Nothing would remove again what is noted of it here: its
            // quarantine, its containers in the counts, their identifiers in the index.
            _ if !is_known => InspectionOutcome::Aborted,
            Some(Ok(seen)) => self.publish(&tracked, began, request, seen),
            Some(Err(error)) => self.retry_later(&tracked, request, &error),
            None => {
                tracked.pending().request.join(request);
                InspectionOutcome::Aborted
            }
        };
        // Last: observations are published in the order of their numbers.
        let mut queue = self.handle.shared.queue.lock();
        queue.done(&tracked.uid, outcome, Instant::now());
    }

    fn publish(
        &mut self,
        tracked: &TrackedPod,
        began: Seq,
        request: InspectionRequest,
        seen: InspectionResult,
    ) -> InspectionOutcome {
        let InspectionResult { mut pod, processes } = seen;
        let now = Instant::now();
        let old = Arc::clone(&tracked.observation.borrow().pod);
        let oom_kills = self.handle.shared.kernel_oom_kills.lock();
        oom_kills.correct(&old, &mut pod);
        drop(oom_kills);
        self.handle.shared.release_pod(&tracked.uid);
        // Held until the record is complete: what a mark changes meanwhile would count as covered.
        let mut pending = tracked.pending();
        pending.failures = 0;
        match pending.unsettled.absorb(&old, pod, now) {
            Absorbed::Withheld { until } => {
                pending.request.join(request);
                InspectionOutcome::Withheld { began, until }
            }
            Absorbed::Published { pod, recheck_at } => {
                // Identifiers learned during the inspection are not in its list; the next one needs
                // them.
                if !pending.is_dirty(began) {
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
                InspectionOutcome::Complete { began, recheck_at }
            }
        }
    }

    fn retry_later(
        &self,
        tracked: &TrackedPod,
        request: InspectionRequest,
        error: &CriError,
    ) -> InspectionOutcome {
        let mut pending = tracked.pending();
        pending.request.join(request);
        // A failed call may have missed something that only a list can find.
        pending.needs_list = true;
        pending.failures = pending.failures.saturating_add(1);
        let failures = pending.failures;
        drop(pending);
        let wait = RETRY_INITIAL
            .saturating_mul(1 << (failures - 1).min(6))
            .min(RETRY_MAX);
        let hung = error.is_deadline_exceeded();
        let text: Arc<str> = ErrorChain(error).to_string().into();
        if hung {
            self.handle.shared.quarantine_pod(&tracked.uid, &text);
        }
        if failures == 1 && !error.is_unavailable() {
            warn!(pod = %tracked.uid, error = %text, "Inspection of a pod failed");
        }
        // The number stays, so that tasks which wait for a newer observation continue to wait.
        tracked
            .observation
            .send_modify(|observation| observation.error = Some(text));
        InspectionOutcome::Failed {
            retry_at: Instant::now() + wait,
            hung,
        }
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

#[cfg(test)]
mod tests;
