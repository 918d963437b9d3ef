//! The side of PLEG that the rest of the agent holds.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rubelet_base::{ContainerId, PodName, PodUid, SandboxId, Seq, seq::SeqSource};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::cell::{Observation, PodCell};

/// A pod of which the runtime has a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimePod {
    /// Its UID, from the label.
    pub uid: PodUid,
    /// Its namespace and name, from the labels.
    pub name: PodName,
    /// The longest termination grace that its containers were made with.
    pub grace: Option<Duration>,
    /// The annotation `kubernetes.io/config.source`.
    pub source: Option<Box<str>>,
}

/// The outcome of the last relist.
#[derive(Debug, Clone, Default)]
pub struct RelistState {
    /// When the last complete list began; `Seq::ZERO` before the first.
    pub seq: Seq,
    /// When it began by tokio's clock.
    pub at: Option<Instant>,
    /// All pods it named, by UID.
    pub pods: Arc<Vec<RuntimePod>>,
}

/// Marks pods and waits for observations. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PlegHandle {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) seq: SeqSource,
    pub(super) cells: Mutex<HashMap<PodUid, Arc<PodCell>>>,
    /// Pods that wait for an inspection. Each stands in it at most once.
    pub(super) queue: Mutex<BTreeSet<PodUid>>,
    pub(super) wake: Notify,
    pub(super) relist_now: Notify,
    pub(super) relist: watch::Sender<RelistState>,
}

impl PlegHandle {
    pub(super) fn new() -> Self {
        let (relist, _) = watch::channel(RelistState::default());
        Self {
            shared: Arc::new(Shared {
                seq: SeqSource::default(),
                cells: Mutex::default(),
                queue: Mutex::default(),
                wake: Notify::new(),
                relist_now: Notify::new(),
                relist,
            }),
        }
    }

    /// Takes a number that is larger than that of every inspection which has begun.
    #[must_use]
    pub fn now(&self) -> Seq {
        self.shared.seq.next()
    }

    /// The outcome of relists, level-triggered.
    #[must_use]
    pub fn relists(&self) -> watch::Receiver<RelistState> {
        self.shared.relist.subscribe()
    }

    /// Follows the observations of a pod. Before the first inspection the observation says that
    /// the runtime has nothing of the pod, as of the last complete list.
    #[must_use]
    pub fn observe(&self, uid: &PodUid) -> watch::Receiver<Observation> {
        self.cell(uid).observation.subscribe()
    }

    /// Something may have changed: inspect the pod soon.
    pub fn mark(&self, uid: &PodUid) {
        self.mark_with(uid, |_| {});
    }

    /// A call's outcome is unknown: identifiers may exist that nobody was told.
    pub fn mark_unknown(&self, uid: &PodUid) {
        self.mark_with(uid, |marks| marks.needs_list = true);
    }

    /// This agent made a sandbox.
    pub fn learned_sandbox(&self, uid: &PodUid, id: &SandboxId) {
        self.mark_with(uid, |marks| {
            marks.learned_sandboxes.insert(id.clone());
        });
    }

    /// This agent made a container in that sandbox.
    pub fn learned_container(&self, uid: &PodUid, id: &ContainerId, sandbox: &SandboxId) {
        self.mark_with(uid, |marks| {
            marks.learned_containers.insert(id.clone(), sandbox.clone());
        });
    }

    /// This agent stopped or removed a sandbox.
    pub fn changed_sandbox(&self, uid: &PodUid, id: &SandboxId) {
        self.mark_with(uid, |marks| {
            marks.changed_sandboxes.insert(id.clone());
        });
    }

    /// This agent removed a container.
    pub fn removed_container(&self, uid: &PodUid, id: &ContainerId) {
        self.mark_with(uid, |marks| {
            marks.removed_containers.insert(id.clone());
        });
    }

    /// The runtime is back: relist now instead of when the next try is due.
    pub fn relist_now(&self) {
        self.shared.relist_now.notify_one();
    }

    /// Drops the record of a pod of which nothing is left.
    pub fn forget(&self, uid: &PodUid) {
        self.shared.lock_cells().remove(uid);
    }

    /// Waits for an observation that began after `after`; asks for an inspection if there is none
    /// yet. Failed inspections are repeated with back-off until one succeeds.
    pub async fn newer(
        &self,
        uid: &PodUid,
        observations: &mut watch::Receiver<Observation>,
        after: Seq,
    ) -> Observation {
        if observations.borrow().seq <= after {
            self.mark(uid);
        }
        let seen = observations
            .wait_for(|seen| seen.seq > after)
            .await
            .map(|seen| seen.clone());
        match seen {
            Ok(seen) => seen,
            // The cell was forgotten: nobody will ever write it again.
            Err(_) => std::future::pending().await,
        }
    }

    pub(super) fn cell(&self, uid: &PodUid) -> Arc<PodCell> {
        let listed = self.shared.relist.borrow().seq;
        Arc::clone(
            self.shared
                .lock_cells()
                .entry(uid.clone())
                .or_insert_with(|| Arc::new(PodCell::new(uid.clone(), listed))),
        )
    }

    /// The record of a pod that a list names. Before the first inspection it says nothing of the
    /// pod, least of all that there is nothing.
    pub(super) fn listed_cell(&self, uid: &PodUid) {
        let new = || Arc::new(PodCell::new(uid.clone(), Seq::ZERO));
        self.shared
            .lock_cells()
            .entry(uid.clone())
            .or_insert_with(new);
    }

    pub(super) fn mark_with(&self, uid: &PodUid, change: impl FnOnce(&mut super::cell::Marks)) {
        let cell = self.cell(uid);
        {
            let mut marks = cell.marks();
            change(&mut marks);
            marks.dirty = self.shared.seq.next();
            if marks.inflight {
                return;
            }
        }
        self.shared.enqueue(uid);
    }
}

impl Shared {
    pub(super) fn lock_cells(&self) -> std::sync::MutexGuard<'_, HashMap<PodUid, Arc<PodCell>>> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enqueue(&self, uid: &PodUid) {
        self.queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid.clone());
        self.wake.notify_one();
    }

    pub(super) fn take_queue(&self) -> BTreeSet<PodUid> {
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
