//! Counts pods when the metrics are read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use rubelet_api::{pod::Pod, volume_plugin::VolumePlugin};
use rubelet_base::PodUid;
use rubelet_node_state::{
    metrics::{PodCounts, WorkOrigin, WorkStage},
    pod_board::PodEntry,
};
use rubelet_pod_plan::VolumeState;
use tokio::sync::watch;

use super::{PodTable, is_static};
use crate::{
    pod_sources::{PodSources, pods_by_uid},
    pod_task::{PodContext, PodControl},
};

/// The pods that have a task, shared with the metrics. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct WorkingPods(Arc<Mutex<BTreeMap<PodUid, WorkingPod>>>);

struct WorkingPod {
    control: watch::Receiver<PodControl>,
    /// Whether the pod comes from a manifest; `None` if no source has named it.
    is_static: Option<bool>,
}

impl WorkingPods {
    /// A task that this controls has begun.
    pub(super) fn began(
        &self,
        uid: PodUid,
        control: watch::Receiver<PodControl>,
        is_static: Option<bool>,
    ) {
        let pod = WorkingPod { control, is_static };
        self.0.lock().insert(uid, pod);
    }

    /// The task of a pod has ended.
    pub(super) fn ended(&self, uid: &PodUid) {
        self.0.lock().remove(uid);
    }
}

impl PodTable {
    /// Has the metrics count the pods at each scrape.
    pub(super) fn show_counts(&self) {
        let counter = PodCounter {
            context: Arc::downgrade(&self.context),
            sources: self.sources.clone(),
            working: self.working.clone(),
        };
        let counts = &self.context.metrics.pod_counts;
        counts.set_probe(move || counter.count());
    }

    /// Counts a pod that is desired again although it was being removed.
    pub(super) fn note_restarted(&self, uid: &PodUid, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let wanted = desired.get(uid).filter(|pod| pod.deletion.is_none());
        if let Some(pod) = wanted {
            self.context.metrics.pod_counts.restarted(is_static(pod));
        }
    }
}

/// What is looked at to count pods.
struct PodCounter {
    /// Holds the metrics, which hold this.
    context: Weak<PodContext>,
    sources: PodSources,
    working: WorkingPods,
}

impl PodCounter {
    /// The pods now; none if the agent is stopping.
    fn count(&self) -> PodCounts {
        let mut counts = PodCounts::default();
        let Some(context) = self.context.upgrade() else {
            return counts;
        };
        let desired = pods_by_uid(self.sources.iter().map(watch::Receiver::borrow));
        let board = &context.board;
        for (uid, pod) in &desired {
            let class = usize::from(is_static(pod));
            counts.desired[class] += 1;
            let entry = board.get(uid);
            // The pod on the board has the ephemeral containers that were added to it here.
            let shown = entry.as_ref().map_or(pod, |entry| &entry.pod);
            counts.ephemeral_containers += shown.spec.ephemeral_containers.len();
            if entry.as_ref().is_none_or(|entry| !entry.has_ended()) {
                counts.active[class] += 1;
                count_volumes(&mut counts.desired_volumes, pod);
            }
        }
        for (uid, task) in &*self.working.0.lock() {
            let entry = board.get(uid);
            let entry = entry.as_deref();
            let is_desired = desired.contains_key(uid);
            let place = (stage(task, entry), origin(task, is_desired));
            *counts.working.entry(place).or_default() += 1;
            if is_desired && task.is_static == Some(true) && context.cluster.mirrors() {
                counts.mirrored += 1;
            }
            if let Some(entry) = entry.filter(|entry| entry.history.volumes == VolumeState::Made) {
                count_volumes(&mut counts.actual_volumes, &entry.pod);
            }
        }
        counts
    }
}

fn stage(task: &WorkingPod, entry: Option<&PodEntry>) -> WorkStage {
    if entry.is_some_and(PodEntry::has_ended) {
        WorkStage::Terminated
    } else if matches!(*task.control.borrow(), PodControl::Run(_)) {
        WorkStage::Sync
    } else {
        WorkStage::Terminating
    }
}

fn origin(task: &WorkingPod, is_desired: bool) -> WorkOrigin {
    match task.is_static {
        Some(is_static) if is_desired => WorkOrigin::Desired { is_static },
        Some(is_static) => WorkOrigin::Orphan { is_static },
        None => WorkOrigin::RuntimeOnly,
    }
}

fn count_volumes(numbers: &mut BTreeMap<VolumePlugin, usize>, pod: &Pod) {
    for volume in &pod.spec.volumes {
        *numbers.entry(volume.source.plugin()).or_default() += 1;
    }
}
