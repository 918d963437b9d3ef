//! Pods that have no task yet: how they are shown, and records for their successors.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::{PodName, PodUid};
use rubelet_node_state::pod_board::PodEntry;
use rubelet_pod_plan::{
    History, Intents, ObservedPod, PlanSettings, PodSnapshot, ProbeResults, Target,
    history::ReplacedPod, plan,
};

use super::{PodTable, is_static};

impl PodTable {
    /// Shows pods that have no task yet, because the runtime is away or there is no room: as they were
    /// recorded, else as pending. A pod of a manifest is not shown beside another one of its name, which
    /// still ends: its mirror pod shows that one.
    pub(super) async fn show_waiting(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) {
        let any = desired.keys().any(|uid| !self.has_place(uid));
        let taken = match any {
            true => self.names_of_others(desired),
            false => BTreeSet::new(),
        };
        let board = &self.context.board;
        let mut shown = BTreeSet::new();
        for (uid, pod) in desired {
            if self.has_place(uid) || is_static(pod) && taken.contains(&pod.name) {
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
        for uid in gone.filter(|uid| !self.has_place(uid)) {
            board.remove(uid);
        }
        self.shown = shown;
    }

    /// Whether something else decides what is shown of a pod.
    fn has_place(&self, uid: &PodUid) -> bool {
        self.tasks.contains_key(uid) || self.finished.contains(uid)
    }

    /// The names of pods that have a task, or that the runtime holds and no source wants.
    fn names_of_others(&mut self, desired: &BTreeMap<PodUid, Arc<Pod>>) -> BTreeSet<PodName> {
        let runtime = self.runtime_pods().into_iter();
        let strangers = runtime.filter(|pod| !desired.contains_key(&pod.uid));
        let tasks = self.tasks.values().map(|task| task.view.name.clone());
        tasks.chain(strangers.map(|pod| pod.name)).collect()
    }

    /// Remembers, for its successor, a pod of a manifest that has ended because the manifest was
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

/// The status of a pod that nobody has worked on yet.
fn waiting(pod: &Pod, settings: &PlanSettings, now: Timestamp) -> PodStatus {
    let snapshot = PodSnapshot {
        pod,
        observed: &ObservedPod::default(),
        history: &History::default(),
        previous: None,
        target: Target::Run,
        settings,
        probes: &ProbeResults::default(),
        intents: &Intents::default(),
        generation: 1,
    };
    plan(&snapshot, now).status
}
