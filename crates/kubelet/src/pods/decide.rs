//! Decisions of the pod table, without effects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};
use rubelet_pleg::RuntimePod;
use rubelet_pod_plan::grace::of_pod;

/// The table's view of one task.
#[derive(Debug, Clone)]
pub(super) struct TaskView {
    /// The pod's name.
    pub(super) name: PodName,
    /// The pod that the task keeps running; `None` once it removes the pod.
    pub(super) running: Option<Arc<Pod>>,
    /// The grace period of the removal.
    pub(super) grace: Duration,
}

/// A change of one task.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TableAction {
    /// Start a task.
    Spawn(Arc<Pod>),
    /// Pass an edit to the task.
    Update(Arc<Pod>),
    /// Have the task remove the pod, or shorten the grace period of its removal.
    Remove {
        uid: PodUid,
        grace: Duration,
        /// The generation of the pod as its source deletes it; 0 if no source names it any more.
        generation: i64,
    },
    /// Start a task that removes a pod which is deleted in the API server.
    SpawnRemoval(Arc<Pod>, Duration),
    /// Start a task that removes a pod in the runtime which no source names.
    RemoveOrphan(RuntimePod),
    /// Start a task that removes the leftover directory of a pod.
    RemoveLeftover(PodUid),
}

/// All inputs of the decision.
pub(super) struct TableSnapshot<'a> {
    /// Desired pods of all sources.
    pub(super) desired: &'a BTreeMap<PodUid, Arc<Pod>>,
    /// True once each source has been read completely.
    pub(super) all_ready: bool,
    /// The existing tasks.
    pub(super) tasks: &'a BTreeMap<PodUid, TaskView>,
    /// Pods in the runtime, by the last complete list.
    pub(super) runtime: &'a [RuntimePod],
    /// Pods with a directory on disk and without a task.
    pub(super) on_disk: &'a BTreeSet<PodUid>,
    /// Pods whose task panicked and is not restarted yet.
    pub(super) backing_off: &'a BTreeSet<PodUid>,
    /// Removed or rejected pods that their source still names.
    pub(super) finished: &'a BTreeSet<PodUid>,
}

/// Compares desired pods, tasks and the runtime. A pod whose name another UID still uses waits
/// until that pod is gone; a pod that is desired again while it is being removed waits, too, and
/// then starts again. Unknown pods are left alone until all sources are ready.
pub(super) fn decide(snapshot: &TableSnapshot<'_>) -> Vec<TableAction> {
    let mut actions = Vec::new();
    let undesired = snapshot
        .runtime
        .iter()
        .filter(|pod| !snapshot.desired.contains_key(&pod.uid));
    let mut names: BTreeSet<&PodName> = snapshot
        .tasks
        .values()
        .map(|task| &task.name)
        .chain(undesired.map(|pod| &pod.name))
        .collect();
    for (uid, task) in snapshot.tasks {
        let wanted = snapshot.desired.get(uid);
        if let Some(grace) = grace_of_removal(task, wanted) {
            actions.push(TableAction::Remove {
                uid: uid.clone(),
                grace,
                generation: wanted.map_or(0, |pod| pod.generation),
            });
        }
    }
    for (uid, pod) in in_order(snapshot.desired) {
        match snapshot.tasks.get(uid) {
            Some(TaskView {
                running: Some(running),
                ..
            }) => {
                if pod.deletion.is_none() && !Arc::ptr_eq(running, pod) {
                    actions.push(TableAction::Update(Arc::clone(pod)));
                }
            }
            // It is being removed. A task for the pod starts when that one has ended.
            Some(TaskView { running: None, .. }) => {}
            None => {
                let backs_off =
                    snapshot.backing_off.contains(uid) || snapshot.finished.contains(uid);
                // Claims the name: only the first of two new pods with one name starts.
                if !backs_off && names.insert(&pod.name) {
                    actions.push(match &pod.deletion {
                        Some(deletion) => {
                            TableAction::SpawnRemoval(Arc::clone(pod), of_pod(deletion.grace))
                        }
                        None => TableAction::Spawn(Arc::clone(pod)),
                    });
                }
            }
        }
    }
    if snapshot.all_ready {
        let unknown = |uid: &PodUid| {
            !snapshot.desired.contains_key(uid)
                && !snapshot.tasks.contains_key(uid)
                && !snapshot.backing_off.contains(uid)
        };
        let orphans = snapshot.runtime.iter().filter(|pod| unknown(&pod.uid));
        actions.extend(orphans.cloned().map(TableAction::RemoveOrphan));
        let leftovers = snapshot
            .on_disk
            .iter()
            .filter(|uid| unknown(uid) && !snapshot.runtime.iter().any(|pod| pod.uid == **uid));
        actions.extend(leftovers.cloned().map(TableAction::RemoveLeftover));
    }
    actions
}

/// The order of admission: pods of manifests first, then by age.
fn in_order(desired: &BTreeMap<PodUid, Arc<Pod>>) -> Vec<(&PodUid, &Arc<Pod>)> {
    let mut pods: Vec<_> = desired.iter().collect();
    pods.sort_by_key(|(_, pod)| (pod.source, pod.created));
    pods
}

/// The grace period of a removal that the task does not know yet: its source no longer names the
/// pod, or deletes it, or shortened the grace period.
fn grace_of_removal(task: &TaskView, wanted: Option<&Arc<Pod>>) -> Option<Duration> {
    let deletion = wanted.and_then(|pod| pod.deletion);
    match (&task.running, wanted, deletion) {
        (Some(pod), None, _) => Some(of_pod(pod.spec.termination_grace_period)),
        (Some(_), Some(_), Some(deletion)) => Some(of_pod(deletion.grace)),
        (None, Some(_), Some(deletion)) => {
            Some(of_pod(deletion.grace)).filter(|grace| *grace < task.grace)
        }
        _ => None,
    }
}
