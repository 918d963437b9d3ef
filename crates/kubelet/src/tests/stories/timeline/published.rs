//! What the agent publishes: statuses and reasons, probe results, events.

use std::{collections::BTreeSet, sync::Arc};

use rubelet_base::{ContainerId, PodUid};
use rubelet_node_state::{
    events::{Event, EventType, Subject},
    pod_board::{PodBoard, PodEntry},
};
use rubelet_pod_plan::{PlanReason, ProbeKind, ProbeResult};
use rubelet_probes::ProberHandle;

use super::{PROBES, Timeline};
use crate::tests::stories::status;

impl Timeline {
    pub(super) fn pods(&mut self, board: &PodBoard, prober: &ProberHandle) {
        let rows = board.list();
        for (uid, _, entry) in &rows {
            self.outcomes(uid, entry, prober);
            self.late(uid, prober);
            self.pod(uid, entry);
        }
        let there: BTreeSet<PodUid> = rows.into_iter().map(|(uid, ..)| uid).collect();
        for uid in std::mem::replace(&mut self.on_board, there.clone()) {
            if !there.contains(&uid) {
                self.shown.remove(&uid);
                self.put(Some(uid.as_str()), "gone", "nothing is left of the pod");
            }
        }
    }

    fn outcomes(&mut self, uid: &PodUid, entry: &PodEntry, prober: &ProberHandle) {
        let outcomes = Arc::clone(&prober.outcomes(uid).borrow());
        for status in entry.status.all_containers() {
            let id = ContainerId::from(&*status.container_id);
            for kind in PROBES {
                let Some(outcome) = outcomes.get(&id, kind) else {
                    continue;
                };
                let old = self.outcomes.insert((id.clone(), kind), outcome);
                // A liveness probe counts as passed until it fails.
                let assumed = match kind {
                    ProbeKind::Liveness => ProbeResult::Success,
                    _ => ProbeResult::Unknown,
                };
                if old.unwrap_or(assumed) != outcome && outcome != ProbeResult::Unknown {
                    let text = format!("{} of {id}: {outcome:?}", kind.as_str());
                    self.put(Some(uid.as_str()), "probe", &text);
                }
            }
        }
    }

    fn late(&mut self, uid: &PodUid, prober: &ProberHandle) {
        for report in prober.reports(uid) {
            let key = (uid.clone(), report.container.clone(), report.kind);
            let old = self.late.insert(key, report.late).unwrap_or_default();
            if report.late > old {
                let (kind, name) = (report.kind.as_str(), report.container);
                let text = format!("{kind} of {name}: run late by the agent, does not count");
                self.put(Some(uid.as_str()), "probe", &text);
            }
        }
    }

    fn pod(&mut self, uid: &PodUid, entry: &Arc<PodEntry>) {
        let old = self.shown.insert(uid.clone(), Arc::clone(entry));
        if old.as_ref().is_some_and(|old| Arc::ptr_eq(old, entry)) {
            return;
        }
        let known = match &old {
            // A new agent publishes its reasons again.
            Some(old) if self.on_board.contains(uid) => whys(old),
            _ => Vec::new(),
        };
        for why in whys(entry) {
            // Whether the agent plans once more after the end depends on the order of events.
            let after_end =
                why == PlanReason::PhaseIsTerminal.to_string() && self.on_board.contains(uid);
            if !known.contains(&why) && !after_end {
                self.put(Some(uid.as_str()), "why", &why);
            }
        }
        self.on_board.insert(uid.clone());
        if entry.pod.spec.containers.is_empty() {
            // A pod without a manifest, known from the runtime and the disk only, has no meaningful
            // status.
            return;
        }
        let state = status::summary(entry);
        if old.as_ref().is_none_or(|old| status::summary(old) != state) {
            self.put(Some(uid.as_str()), "state", &state);
        }
        let before = old.as_ref().map(|old| &old.status);
        for condition in status::conditions(&entry.pod, before, &entry.status) {
            self.put(Some(uid.as_str()), "cond", &condition);
        }
    }

    pub(super) fn new_events(&mut self) -> Vec<Arc<Event>> {
        let mut rows = self.recorder.board().list();
        rows.retain(|(_, version, _)| *version > self.event_mark);
        rows.sort_by_key(|(_, version, _)| *version);
        if let Some((_, newest, _)) = rows.last() {
            self.event_mark = *newest;
        }
        let events = rows.into_iter().map(|(_, _, event)| event);
        events.filter(|event| !is_routine(event)).collect()
    }

    pub(super) fn event(&mut self, event: &Event) {
        let (uid, container) = match &event.subject {
            Subject::Pod {
                uid, field_path, ..
            } => {
                let name = field_path.split(['{', '}']).nth(1);
                (uid.clone(), name.map(|name| format!("{name}: ")))
            }
            _ => (None, None),
        };
        let text = format!(
            "{} {} {}{}",
            event.kind.as_str(),
            event.reason,
            container.unwrap_or_default(),
            event.message
        );
        self.put(uid.as_ref().map(PodUid::as_str), "event", &text);
    }
}

fn whys(entry: &PodEntry) -> Vec<String> {
    entry.why.iter().map(ToString::to_string).collect()
}

/// True for events of probes.
pub(super) fn is_of_probe(event: &Event) -> bool {
    matches!(&*event.reason, "Unhealthy" | "ProbeWarning")
}

/// True for events that repeat what the calls around them show.
fn is_routine(event: &Event) -> bool {
    let routine = matches!(&*event.reason, "Created" | "Started" | "Pulling")
        || &*event.reason == "Pulled" && event.message.contains("already present");
    event.kind == EventType::Normal && routine
}
