//! The choices of the pod table, without effects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use rubelet_api::pod::Pod;
use rubelet_base::{PodName, PodUid};

use crate::pleg::RuntimePod;

/// What the table knows of one task.
#[derive(Debug, Clone)]
pub(super) struct TaskView {
    /// The pod's name.
    pub(super) name: PodName,
    /// What it was last told to run; `None` once it was told to remove the pod.
    pub(super) running: Option<Arc<Pod>>,
}

/// What to do about one pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TableAction {
    /// Start a task.
    Spawn(Arc<Pod>),
    /// Tell the task of an edit.
    Update(Arc<Pod>),
    /// Tell the task to remove the pod.
    Remove(PodUid, Duration),
    /// Start a task that removes a pod which no source wants.
    RemoveOrphan(RuntimePod),
    /// Start a task that removes the folder of a pod which nobody else knows.
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
    /// Pods with a folder on disk and without a task.
    pub(super) on_disk: &'a BTreeSet<PodUid>,
    /// Pods whose task died and is not to be started again yet.
    pub(super) resting: &'a BTreeSet<PodUid>,
}

/// Compares. A pod whose name is still in use by another UID waits until that one is gone; a pod
/// that is wanted again while it is removed waits too, and then starts anew. Nothing that is
/// unknown is touched before all sources are ready.
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
        if let Some(pod) = &task.running
            && !snapshot.desired.contains_key(uid)
        {
            let grace = pod
                .spec
                .termination_grace_period
                .max(Duration::from_secs(1));
            actions.push(TableAction::Remove(uid.clone(), grace));
        }
    }
    for (uid, pod) in snapshot.desired {
        match snapshot.tasks.get(uid) {
            Some(TaskView {
                running: Some(running),
                ..
            }) => {
                if !Arc::ptr_eq(running, pod) {
                    actions.push(TableAction::Update(Arc::clone(pod)));
                }
            }
            Some(TaskView { running: None, .. }) => {}
            None => {
                if !snapshot.resting.contains(uid) && names.insert(&pod.name) {
                    actions.push(TableAction::Spawn(Arc::clone(pod)));
                }
            }
        }
    }
    if snapshot.all_ready {
        let unknown = |uid: &PodUid| {
            !snapshot.desired.contains_key(uid)
                && !snapshot.tasks.contains_key(uid)
                && !snapshot.resting.contains(uid)
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
