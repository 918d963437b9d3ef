//! Publishes pods that have no task yet, and notes pods for their successors.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::{PodName, PodUid};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::{
    History, ObservedPod, OperatorIntents, PlanSettings, PodSnapshot, ProbeResults, Target,
    history::ReplacedPod, plan,
};

use super::{PodTable, is_static};

impl PodTable {
    /// Publishes pods that have no task yet, because the runtime is down or resources are missing:
    /// the recorded status, else `Pending`. A pod of a manifest is not published beside another pod
    /// of its name that still terminates, as the mirror pod shows that one.
    pub(super) async fn show_waiting(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let any = desired.keys().any(|uid| !self.is_published(uid));
        let taken = match any {
            true => self.names_of_others(desired),
            false => BTreeSet::new(),
        };
        let board = &self.context.board;
        let mut shown = BTreeSet::new();
        for (uid, pod) in desired {
            if self.is_published(uid) || is_static(pod) && taken.contains(&pod.name) {
                continue;
            }
            if board
                .get(uid)
                .is_some_and(|entry| Arc::ptr_eq(&entry.pod, pod))
            {
                shown.insert(uid.clone());
                continue;
            }
            let restored = self.restore(pod).await;
            shown.insert(uid.clone());
            let now = self.context.clock.now();
            let status = restored.record.map_or_else(
                || waiting(pod, &self.context.settings, now),
                |old| old.status,
            );
            let (pod, why) = (Arc::clone(pod), Vec::new());
            board.set(
                uid.clone(),
                PodEntry {
                    pod,
                    status,
                    deletion: None,
                    why,
                    history: Arc::default(),
                    wake_at: None,
                    finished: false,
                },
            );
        }
        let gone = self.shown.difference(&shown);
        for uid in gone.filter(|uid| !self.is_published(uid)) {
            board.remove(uid);
        }
        self.shown = shown;
    }

    /// True if the status of the pod is published elsewhere.
    fn is_published(&self, uid: &PodUid) -> bool {
        self.tasks.contains_key(uid) || self.finished.contains(uid)
    }

    /// The names of pods that have a task, or that are in the runtime and in no source.
    fn names_of_others(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) -> BTreeSet<PodName> {
        let runtime = self.runtime_pods().into_iter();
        let undesired = runtime.filter(|pod| !desired.contains_key(&pod.uid));
        let tasks = self.tasks.values().map(|task| task.view.name.clone());
        tasks.chain(undesired.map(|pod| pod.name)).collect()
    }

    /// Notes, for its successor, a pod of a manifest that terminated because the manifest was
    /// edited or written again.
    pub(super) fn note_replaced(&mut self, uid: &PodUid, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let wanted = |name: &PodName| {
            let mut all = desired.values();
            all.any(|pod| pod.name == *name && is_static(pod))
        };
        self.replaced.retain(|name, _| wanted(name));
        let Some(task) = self.tasks.get(uid) else {
            return;
        };
        if wanted(&task.view.name) {
            let replaced = ReplacedPod {
                uid: uid.clone(),
                at: self.context.clock.now(),
            };
            self.replaced.insert(task.view.name.clone(), replaced);
        }
    }
}

/// The status of a pod that has never had a task.
fn waiting(pod: &Pod, settings: &PlanSettings, now: Timestamp) -> PodStatus {
    let snapshot = PodSnapshot {
        pod,
        observed: &ObservedPod::default(),
        history: &History::default(),
        previous: None,
        target: Target::Run,
        settings,
        probes: &ProbeResults::default(),
        intents: &OperatorIntents::default(),
        generation: 1,
    };
    plan(&snapshot, now).status
}
