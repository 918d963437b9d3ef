//! The state shared by the pods' tasks and the prober.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use rubelet_api::pod::Pod;
use rubelet_base::{ContainerId, PodUid};
use rubelet_pod_plan::{ProbeKind, ProbeResult, ProbeResults, ProbeTarget, probe::AttemptOutcome};
use tokio::sync::{Notify, watch};

use super::{
    ProbeStatus,
    probe_metrics::{MetricsPage, ProbeLabels, ProbeMetrics},
};

/// The probes and results of all pods.
#[derive(Debug, Default)]
pub(super) struct ProbeState {
    state: Mutex<PodProbeStates>,
    wake: Notify,
    /// When the prober started.
    began: OnceLock<Timestamp>,
}

#[derive(Debug, Default)]
struct PodProbeStates {
    pods: HashMap<PodUid, PodProbeState>,
    /// Pods whose desired probes the prober has not applied yet.
    changed: Vec<PodUid>,
}

/// The desired probes of one pod, and their results.
#[derive(Debug)]
pub(super) struct PodProbeState {
    outcomes: watch::Sender<Arc<ProbeResults>>,
    wanted: Option<Arc<WantedProbes>>,
    reports: Vec<ProbeStatus>,
    metrics: Vec<ProbeMetrics>,
}

/// The desired probes of one pod.
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
    /// Sets the desired probes of a pod.
    pub(super) fn want(&self, uid: &PodUid, wanted: WantedProbes) {
        let mut state = self.state.lock();
        let row = state
            .pods
            .entry(uid.clone())
            .or_insert_with(PodProbeState::new);
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
        let row = state
            .pods
            .entry(uid.clone())
            .or_insert_with(PodProbeState::new);
        row.outcomes.subscribe()
    }

    pub(super) fn reports(&self, uid: &PodUid) -> Vec<ProbeStatus> {
        let state = self.state.lock();
        let row = state.pods.get(uid);
        row.map(|row| row.reports.clone()).unwrap_or_default()
    }

    /// Records when the prober started.
    pub(super) fn begin(&self, now: Timestamp) {
        // A node has one prober.
        let _ = self.began.set(now);
    }

    /// Metrics of all probes, ordered by pod.
    pub(super) fn metrics(&self) -> String {
        let mut page = MetricsPage::new();
        let state = self.state.lock();
        let mut pods: Vec<_> = state
            .pods
            .values()
            .filter_map(|row| Some((&row.wanted.as_ref()?.pod, &row.metrics)))
            .collect();
        pods.sort_unstable_by(|(one, _), (other, _)| {
            (&one.name, &one.uid).cmp(&(&other.name, &other.uid))
        });
        for (pod, metrics) in pods {
            let owner = ProbeLabels {
                namespace: &pod.name.namespace,
                pod: &pod.name.name,
                uid: pod.uid.as_str(),
            };
            for metrics in metrics {
                page.add(owner, metrics);
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

    /// Changes the state of a pod, unless it was forgotten.
    pub(super) fn change(&self, uid: &PodUid, change: impl FnOnce(&mut PodProbeState)) {
        if let Some(row) = self.state.lock().pods.get_mut(uid) {
            change(row);
        }
    }
}

impl PodProbeState {
    fn new() -> Self {
        Self {
            outcomes: watch::Sender::new(Arc::default()),
            wanted: None,
            reports: Vec::new(),
            metrics: Vec::new(),
        }
    }

    /// Counts an attempt.
    pub(super) fn count(
        &mut self,
        container: &str,
        kind: ProbeKind,
        attempt: AttemptOutcome,
        took: Duration,
    ) {
        let is_meant =
            |metrics: &ProbeMetrics| *metrics.container == *container && metrics.kind == kind;
        let at = self.metrics.iter().position(is_meant).unwrap_or_else(|| {
            self.metrics.push(ProbeMetrics::new(container, kind));
            self.metrics.len() - 1
        });
        self.metrics[at].add(attempt, took);
    }

    /// Publishes the result of a probe, and wakes the pod's task.
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

    /// Adds a report, replacing an older one of the same probe.
    pub(super) fn begin(&mut self, report: ProbeStatus) {
        match self.report(&report.id, report.kind) {
            Some(old) => *old = report,
            None => self.reports.push(report),
        }
    }

    /// Forgets an instance of a container. Does not wake the task, which no longer needs its
    /// results.
    pub(super) fn forget(&mut self, id: &ContainerId) {
        self.reports.retain(|report| report.id != *id);
        self.outcomes.send_if_modified(|outcomes| {
            Arc::make_mut(outcomes).retain(|of, _| of != id);
            false
        });
    }
}
