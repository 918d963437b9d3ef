//! The state that pods' tasks and the prober share.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use rubelet_api::pod::Pod;
use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ProbeKind, ProbeResult, ProbeResults, ProbeTarget, probe::Attempt};
use tokio::sync::{Notify, watch};

use super::{
    ProbeStatus,
    probe_metrics::{Owner, Page, ProbeMetrics},
};

/// One row for each pod.
#[derive(Debug, Default)]
pub(super) struct ProbeState {
    state: Mutex<ProbeRows>,
    wake: Notify,
    /// When this process began to probe.
    began: OnceLock<Timestamp>,
}

#[derive(Debug, Default)]
struct ProbeRows {
    pods: HashMap<PodUid, Row>,
    /// Pods whose desired probes the prober has not taken over yet.
    changed: Vec<PodUid>,
}

/// The desired probes of one pod, and their results.
#[derive(Debug)]
pub(super) struct Row {
    outcomes: watch::Sender<Arc<ProbeResults>>,
    wanted: Option<Arc<WantedProbes>>,
    reports: Vec<ProbeStatus>,
    tallies: Vec<ProbeMetrics>,
}

/// What to try of one pod.
#[derive(Debug)]
pub(super) struct WantedProbes {
    pub(super) pod: Arc<Pod>,
    pub(super) ip: Box<str>,
    pub(super) targets: Vec<ProbeTarget>,
}

impl WantedProbes {
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pod, &other.pod) && self.ip == other.ip && self.targets == other.targets
    }
}

impl ProbeState {
    /// Other probes are desired of a pod.
    pub(super) fn want(&self, uid: &PodUid, wanted: WantedProbes) {
        let mut state = self.state.lock();
        let row = state.pods.entry(uid.clone()).or_insert_with(Row::new);
        let same = match &row.wanted {
            Some(old) => old.same(&wanted),
            None => wanted.targets.is_empty(),
        };
        if same {
            return;
        }
        row.wanted = Some(Arc::new(wanted));
        state.changed.push(uid.clone());
        drop(state);
        self.wake.notify_one();
    }

    pub(super) fn forget(&self, uid: &PodUid) {
        let mut state = self.state.lock();
        if state.pods.remove(uid).is_some() {
            state.changed.push(uid.clone());
            drop(state);
            self.wake.notify_one();
        }
    }

    pub(super) fn outcomes(&self, uid: &PodUid) -> watch::Receiver<Arc<ProbeResults>> {
        let mut state = self.state.lock();
        let row = state.pods.entry(uid.clone()).or_insert_with(Row::new);
        row.outcomes.subscribe()
    }

    pub(super) fn reports(&self, uid: &PodUid) -> Vec<ProbeStatus> {
        let state = self.state.lock();
        let row = state.pods.get(uid);
        row.map(|row| row.reports.clone()).unwrap_or_default()
    }

    /// Remembers when this process began to probe.
    pub(super) fn begin(&self, now: Timestamp) {
        // A second prober of one node does not exist.
        let _ = self.began.set(now);
    }

    /// Numbers of all probes, ordered by pod.
    pub(super) fn metrics(&self) -> String {
        let mut page = Page::new();
        let state = self.state.lock();
        let mut pods: Vec<_> = state
            .pods
            .values()
            .filter_map(|row| Some((&row.wanted.as_ref()?.pod, &row.tallies)))
            .collect();
        pods.sort_unstable_by(|(one, _), (other, _)| {
            (&one.name, &one.uid).cmp(&(&other.name, &other.uid))
        });
        for (pod, tallies) in pods {
            let owner = Owner {
                namespace: &pod.name.namespace,
                pod: &pod.name.name,
                uid: pod.uid.as_str(),
            };
            for tally in tallies {
                page.add(owner, tally);
            }
        }
        page.finish(self.began.get().copied())
    }

    /// Waits until the desired probes may have changed.
    pub(super) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// The desired probes of the pods that changed; `None` for forgotten ones.
    pub(super) fn take_changes(&self) -> Vec<(PodUid, Option<Arc<WantedProbes>>)> {
        let mut state = self.state.lock();
        let changed = std::mem::take(&mut state.changed);
        let wanted = changed.into_iter().map(|uid| {
            let row = state.pods.get(&uid);
            let wanted = row.and_then(|row| row.wanted.clone());
            (uid, wanted)
        });
        wanted.collect()
    }

    /// Changes the row of a pod, unless it was forgotten.
    pub(super) fn change(&self, uid: &PodUid, change: impl FnOnce(&mut Row)) {
        if let Some(row) = self.state.lock().pods.get_mut(uid) {
            change(row);
        }
    }
}

impl Row {
    fn new() -> Self {
        Self {
            outcomes: watch::Sender::new(Arc::default()),
            wanted: None,
            reports: Vec::new(),
            tallies: Vec::new(),
        }
    }

    /// Counts an attempt.
    pub(super) fn count(
        &mut self,
        container: &str,
        kind: ProbeKind,
        attempt: Attempt,
        took: Duration,
    ) {
        let is_meant = |tally: &ProbeMetrics| *tally.container == *container && tally.kind == kind;
        let at = self.tallies.iter().position(is_meant).unwrap_or_else(|| {
            self.tallies.push(ProbeMetrics::new(container, kind));
            self.tallies.len() - 1
        });
        self.tallies[at].add(attempt, took);
    }

    /// Says what a probe amounts to; wakes the pod's task.
    pub(super) fn publish(&mut self, id: &ContainerId, kind: ProbeKind, outcome: ProbeResult) {
        self.outcomes.send_if_modified(|outcomes| {
            let new = outcomes.get(id, kind) != Some(outcome);
            if new {
                Arc::make_mut(outcomes).set(id.clone(), kind, outcome);
            }
            new
        });
    }

    /// The report of a probe, for changing it.
    pub(super) fn report(&mut self, id: &ContainerId, kind: ProbeKind) -> Option<&mut ProbeStatus> {
        let mut reports = self.reports.iter_mut();
        reports.find(|report| report.id == *id && report.kind == kind)
    }

    /// Begins a report, in place of an older one of the same probe.
    pub(super) fn begin(&mut self, report: ProbeStatus) {
        match self.report(&report.id, report.kind) {
            Some(old) => *old = report,
            None => self.reports.push(report),
        }
    }

    /// Forgets an instance of a container. Nobody reads its outcomes any more, so nobody is woken.
    pub(super) fn forget(&mut self, id: &ContainerId) {
        self.reports.retain(|report| report.id != *id);
        self.outcomes.send_if_modified(|outcomes| {
            Arc::make_mut(outcomes).retain(|of, _| of != id);
            false
        });
    }
}
