//! The choices of the pod table, without effects.

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
    /// The pod that it was last ordered to run; `None` once it was ordered to remove the pod.
    pub(super) running: Option<Arc<Pod>>,
    /// The grace of the order to remove the pod.
    pub(super) grace: Duration,
}

/// What to do about one pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TableAction {
    /// Start a task.
    Spawn(Arc<Pod>),
    /// Pass an edit to the task.
    Update(Arc<Pod>),
    /// Order the task to remove the pod, or to do it sooner.
    Remove(PodUid, Duration),
    /// Start a task that removes a pod which the API server wants deleted.
    SpawnRemoval(Arc<Pod>, Duration),
    /// Start a task that removes a pod which no source wants.
    RemoveOrphan(RuntimePod),
    /// Start a task that removes the directory of a pod which nobody else knows.
    RemoveLeftover(PodUid),
}

/// Everything the choice depends on.
pub(super) struct TableSnapshot<'a> {
    /// What the sources want.
    pub(super) desired: &'a BTreeMap<PodUid, Arc<Pod>>,
    /// True once each source has given a complete answer.
    pub(super) all_ready: bool,
    /// The tasks there are.
    pub(super) tasks: &'a BTreeMap<PodUid, TaskView>,
    /// What the runtime holds, as of the last complete list.
    pub(super) runtime: &'a [RuntimePod],
    /// Pods with a directory on disk and without a task.
    pub(super) on_disk: &'a BTreeSet<PodUid>,
    /// Pods whose task died and is not to be started again yet.
    pub(super) backing_off: &'a BTreeSet<PodUid>,
    /// Pods of which nothing is left, or that were rejected, as long as their source names them.
    pub(super) finished: &'a BTreeSet<PodUid>,
}

/// Compares. A pod whose name is still in use by another UID waits until that one is gone; a pod
/// that is desired again while it is removed waits too, and then starts again. Nothing unknown is
/// touched before all sources are ready.
pub(super) fn decide(snapshot: &TableSnapshot<'_>) -> Vec<TableAction> {
    let mut actions = Vec::new();
    let strangers = snapshot
        .runtime
        .iter()
        .filter(|pod| !snapshot.desired.contains_key(&pod.uid));
    let mut names: BTreeSet<&PodName> = snapshot
        .tasks
        .values()
        .map(|task| &task.name)
        .chain(strangers.map(|pod| &pod.name))
        .collect();
    for (uid, task) in snapshot.tasks {
        if let Some(grace) = grace_of_removal(task, snapshot.desired.get(uid)) {
            actions.push(TableAction::Remove(uid.clone(), grace));
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
                // Claims the name: of two new pods of one name only the first starts.
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

/// The order in which pods are taken in: those of manifests first, then the older ones.
fn in_order(desired: &BTreeMap<PodUid, Arc<Pod>>) -> Vec<(&PodUid, &Arc<Pod>)> {
    let mut pods: Vec<_> = desired.iter().collect();
    pods.sort_by_key(|(_, pod)| (pod.source, pod.created));
    pods
}

/// With which grace a task is to remove its pod, if that is news to it: its source names the pod no
/// more, or wants it deleted, or sooner than before.
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
