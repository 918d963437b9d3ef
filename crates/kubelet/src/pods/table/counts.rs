//! Counts pods for the metrics.

use std::{collections::BTreeMap, sync::Arc};

use rubelet_api::pod::Pod;
use rubelet_base::PodUid;
use rubelet_node_state::{
    metrics::{PodCounts, WorkOrigin, WorkStage},
    pod_board::PodEntry,
};
use rubelet_pod_plan::VolumeState;

use super::{PodTable, TaskEntry, is_static};

impl PodTable {
    /// Shows how many pods there are.
    pub(super) fn count(&self, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let mut counts = PodCounts::default();
        let board = &self.context.board;
        for (uid, pod) in desired {
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
        for (uid, task) in &self.tasks {
            let entry = board.get(uid);
            let entry = entry.as_deref();
            let is_desired = desired.contains_key(uid);
            let place = (stage(task, entry), origin(task, is_desired));
            *counts.working.entry(place).or_default() += 1;
            if is_desired && task.is_static == Some(true) && self.context.cluster.mirrors() {
                counts.mirrored += 1;
            }
            if let Some(entry) = entry.filter(|entry| entry.history.volumes == VolumeState::Made) {
                count_volumes(&mut counts.actual_volumes, &entry.pod);
            }
        }
        self.context.metrics.pod_counts.set(&counts);
    }

    /// Counts a pod that is desired again although it was being removed.
    pub(super) fn note_restarted(&self, uid: &PodUid, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let wanted = desired.get(uid).filter(|pod| pod.deletion.is_none());
        if let Some(pod) = wanted {
            self.context.metrics.pod_counts.restarted(is_static(pod));
        }
    }
}

fn stage(task: &TaskEntry, entry: Option<&PodEntry>) -> WorkStage {
    if entry.is_some_and(PodEntry::has_ended) {
        WorkStage::Terminated
    } else if task.view.running.is_some() {
        WorkStage::Sync
    } else {
        WorkStage::Terminating
    }
}

fn origin(task: &TaskEntry, is_desired: bool) -> WorkOrigin {
    match task.is_static {
        Some(is_static) if is_desired => WorkOrigin::Desired { is_static },
        Some(is_static) => WorkOrigin::Orphan { is_static },
        None => WorkOrigin::RuntimeOnly,
    }
}

fn count_volumes(numbers: &mut BTreeMap<&'static str, usize>, pod: &Pod) {
    for volume in &pod.spec.volumes {
        *numbers.entry(volume.source.plugin()).or_default() += 1;
    }
}
