//! Compares a complete list of the runtime with the records.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_base::Seq;
use rubelet_pod_plan::cri_config::labels::POD_UID;
use tokio::time::Instant;
use tracing::debug;

use super::{
    cause::InspectionCause,
    handle::{RelistState, RuntimePod},
    listing::{Difference, ListedPod, RuntimeList, compare, group, runtime_pods},
    start_event_watchdog::StreamAction,
    task::PlegTask,
    tracked_pod::TrackedPod,
};

impl PlegTask {
    /// Compares a complete list with the records: marks pods that differ, and creates records for
    /// new pods.
    pub(super) fn reconcile(&mut self, began: Seq, at: Instant, listed: &RuntimeList) {
        let first = self.handle.shared.relist.borrow().at.is_none();
        let differs = !self.is_as_recorded(began, listed);
        let pods = (differs || first).then(|| self.compare_all(began, listed));
        self.handle.shared.relist.send_if_modified(|state| {
            let changed = pods.as_ref().is_some_and(|pods| *state.pods != *pods);
            let pods = match pods {
                Some(pods) if changed => Arc::new(pods),
                _ => Arc::clone(&state.pods),
            };
            *state = RelistState {
                seq: began,
                at: Some(at),
                pods,
            };
            // A list that equals the last one wakes no task.
            changed || first
        });
    }

    /// True if a list matches the records. Allocates nothing.
    fn is_as_recorded(&self, began: Seq, listed: &RuntimeList) -> bool {
        let pods = self.handle.shared.pods.lock();
        let tracked = |labels: &Labels| pods.get(labels.get(POD_UID)?.as_str());
        let mut known = true;
        for item in &listed.sandboxes {
            match tracked(&item.labels) {
                Some(tracked) => tracked.pending().listed.add_sandbox(item),
                None => known &= !item.labels.contains_key(POD_UID),
            }
        }
        for item in &listed.containers {
            match tracked(&item.labels) {
                Some(tracked) => tracked.pending().listed.add_container(item),
                None => known &= !item.labels.contains_key(POD_UID),
            }
        }
        let mut same = true;
        for tracked in pods.values() {
            let mut pending = tracked.pending();
            let sum = std::mem::take(&mut pending.listed);
            // An inspection that began after the list is newer than the list.
            let seen = tracked.observation.borrow().seq;
            same &= seen > began || seen > Seq::ZERO && sum == pending.fingerprint;
        }
        known && same
    }

    /// Compares pod by pod and marks pods that differ. Returns all pods in the list.
    fn compare_all(&mut self, began: Seq, listed: &RuntimeList) -> Vec<RuntimePod> {
        let grouped = group(&listed.sandboxes, &listed.containers);
        let pods = runtime_pods(&grouped);
        for pod in &pods {
            self.handle.track_listed(&pod.uid);
        }
        let all: Vec<_> = self.handle.shared.pods.lock().values().cloned().collect();
        let nothing = ListedPod::default();
        let gapless = self.handle.shared.event_stream.lock().schedule.is_gapless();
        for tracked in all {
            let found = grouped.get(tracked.uid.as_str()).unwrap_or(&nothing);
            let difference = compare(found, &tracked.observation.borrow(), began);
            if difference == Difference::None {
                continue;
            }
            debug!(pod = %tracked.uid, ?difference, "Relist found a difference");
            // A difference counts as missed only if an event should have reported it, and none
            // comes within half a second.
            if gapless && self.is_unreported(&tracked) {
                self.missed
                    .note(&tracked.uid, began, difference, Instant::now());
            }
            self.handle
                .mark_pod(&tracked, InspectionCause::Relist, |pending| {
                    pending.reread_all = true;
                    pending.needs_list |= difference == Difference::Identifiers;
                });
        }
        pods
    }

    /// True if no inspection is requested or in progress that would show the same.
    fn is_unreported(&self, tracked: &TrackedPod) -> bool {
        // While a task executes steps, it changes the pod itself; they are inspected when it is
        // done.
        if self.handle.shared.queue.lock().is_active(&tracked.uid) {
            return false;
        }
        let seen = tracked.observation.borrow().seq;
        !tracked.pending().is_dirty(seen)
    }

    /// Counts changes whose event has not arrived in time.
    pub(super) fn look_for_missed(&mut self, now: Instant) {
        let mut missed = false;
        for change in self.missed.take_due(now) {
            let Some(tracked) = self.handle.shared.known(&change.uid) else {
                continue;
            };
            // An event or a step of this agent explains it.
            if tracked.pending().last_event > change.began {
                continue;
            }
            missed = true;
            let kind = change.difference.as_str();
            self.handle.shared.metrics.pleg.missed_change(kind);
            tracing::warn!(pod = %change.uid, kind, "Relist found a change without an event");
        }
        if missed {
            self.suspect(StreamAction::Reconnect);
        }
    }
}

type Labels = BTreeMap<String, String>;
