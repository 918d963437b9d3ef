//! What PLEG keeps of one pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rubelet_base::{ContainerId, PodUid, SandboxId, Seq};
use rubelet_pod_plan::ObservedPod;
use tokio::sync::watch;

/// The result of the last inspection of a pod.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// When the inspection began, in this process's order.
    pub seq: Seq,
    /// What it saw.
    pub pod: Arc<ObservedPod>,
    /// Why the last try to inspect failed, if it did; `pod` is then older than that try.
    pub error: Option<Arc<str>>,
}

/// One pod's record. The inspection task writes it, everyone else marks it.
#[derive(Debug)]
pub(super) struct PodCell {
    pub(super) uid: PodUid,
    marks: Mutex<Marks>,
    pub(super) observation: watch::Sender<Observation>,
}

/// Causes that wait for an inspection.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The latest cause.
    pub(super) dirty: Seq,
    /// True while an inspection is under way.
    pub(super) inflight: bool,
    /// Failed inspections in a row.
    pub(super) failures: u32,
    /// The identifiers are not known for sure: list before looking.
    pub(super) needs_list: bool,
    /// Identifiers from the answers to this agent's own calls.
    pub(super) learned_sandboxes: BTreeSet<SandboxId>,
    /// Identifiers from the answers to this agent's own calls.
    pub(super) learned_containers: BTreeMap<ContainerId, SandboxId>,
    /// Containers that this agent removed: final records must go too.
    pub(super) removed_containers: BTreeSet<ContainerId>,
    /// Sandboxes that this agent stopped or removed: records of them are not final any more.
    pub(super) changed_sandboxes: BTreeSet<SandboxId>,
}

impl PodCell {
    /// A record that says: the runtime had nothing of this pod when the list of `seq` began.
    pub(super) fn new(uid: PodUid, seq: Seq) -> Self {
        let (observation, _) =
            watch::channel(Observation { seq, ..Observation::default() });
        Self { uid, marks: Mutex::default(), observation }
    }

    pub(super) fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    /// True if a cause is newer than the last inspection.
    pub(super) fn is_dirty(&self, observed: Seq) -> bool {
        self.dirty >= observed && self.dirty > Seq::ZERO
    }
}
