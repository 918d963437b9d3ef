//! The complete list of the runtime, compared with the records.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_base::Seq;
use rubelet_pod_plan::cri_config::labels::POD_UID;
use tokio::time::Instant;
use tracing::debug;

use super::{
    cause::Cause,
    handle::{RelistState, RuntimePod},
    listing::{Difference, Listed, ListedPod, compare, group, runtime_pods},
    start_events::StreamVerdict,
    task::PlegTask,
    tracked_pod::TrackedPod,
};

impl PlegTask {
    /// Compares a complete list with the records: marks what differs, and makes records for pods
    /// that are new.
    pub(super) fn reconcile(&mut self, began: Seq, at: Instant, listed: &Listed) {
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
            // Nobody is woken for a list like the last one.
            changed || first
        });
    }

    /// Whether a list matches the records; allocates nothing.
    fn is_as_recorded(&self, began: Seq, listed: &Listed) -> bool {
        let pods = self.handle.shared.pods.lock();
        let tracked = |labels: &Labels| pods.get(labels.get(POD_UID)?.as_str());
        let mut known = true;
        for item in &listed.sandboxes {
            match tracked(&item.labels) {
                Some(tracked) => tracked.marks().listed.add_sandbox(item),
                None => known &= !item.labels.contains_key(POD_UID),
            }
        }
        for item in &listed.containers {
            match tracked(&item.labels) {
                Some(tracked) => tracked.marks().listed.add_container(item),
                None => known &= !item.labels.contains_key(POD_UID),
            }
        }
        let mut same = true;
        for tracked in pods.values() {
            let mut marks = tracked.marks();
            let sum = std::mem::take(&mut marks.listed);
            // What was inspected since the list began is newer than the list.
            let seen = tracked.observation.borrow().seq;
            same &= seen > began || seen > Seq::ZERO && sum == marks.fingerprint;
        }
        known && same
    }

    /// Compares pod by pod and marks those that differ; all pods that the list names.
    fn compare_all(&mut self, began: Seq, listed: &Listed) -> Vec<RuntimePod> {
        let grouped = group(&listed.sandboxes, &listed.containers);
        let pods = runtime_pods(&grouped);
        for pod in &pods {
            self.handle.track_listed(&pod.uid);
        }
        let all: Vec<_> = self.handle.shared.pods.lock().values().cloned().collect();
        let nothing = ListedPod::default();
        let gapless = self.handle.shared.flow.lock().cadence.is_gapless();
        for tracked in all {
            let found = grouped.get(tracked.uid.as_str()).unwrap_or(&nothing);
            let difference = compare(found, &tracked.observation.borrow(), began);
            if difference == Difference::None {
                continue;
            }
            debug!(pod = %tracked.uid, ?difference, "Relist found a difference");
            // A difference counts as missed only where an event was due, and if none comes within a
            // moment.
            if gapless && is_untold(&tracked) {
                self.missed
                    .note(&tracked.uid, began, difference, Instant::now());
            }
            self.handle.mark_pod(&tracked, Cause::Relist, |marks| {
                marks.reread_all = true;
                marks.needs_list |= difference == Difference::Identifiers;
            });
        }
        pods
    }

    /// Counts the changes without an event in time.
    pub(super) fn look_for_missed(&mut self, now: Instant) {
        let mut missed = false;
        for change in self.missed.take_due(now) {
            let Some(tracked) = self.handle.shared.known(&change.uid) else {
                continue;
            };
            // An event or a step of this agent explains it.
            if tracked.marks().last_event > change.began {
                continue;
            }
            missed = true;
            let kind = change.difference.as_str();
            self.handle.shared.metrics.pleg.missed_change(kind);
            tracing::warn!(pod = %change.uid, kind, "A relist found a change without an event");
        }
        if missed {
            self.suspect(StreamVerdict::Renew);
        }
    }
}

type Labels = BTreeMap<String, String>;

/// Whether no inspection has been requested that would show the same.
fn is_untold(tracked: &TrackedPod) -> bool {
    let seen = tracked.observation.borrow().seq;
    let marks = tracked.marks();
    // A task at work changes the pod itself, and its steps are inspected when it is done.
    !marks.inspection.is_claimed() && !marks.busy && !marks.is_dirty(seen)
}
