//! What PLEG keeps of one pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rubelet_base::{ContainerId, PodUid, SandboxId, Seq};
use rubelet_pod_plan::{ContainerPhase, ObservedPod};
use tokio::{sync::watch, time::Instant};

use super::late_reason::LateReasons;

/// A container that was unknown for this long is unknown.
const BELIEVE_UNKNOWN: Duration = Duration::from_secs(1);

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
    /// Containers that the runtime lost track of, and since when.
    pub(super) unknown_since: BTreeMap<ContainerId, Instant>,
    /// Exits whose reason may still change.
    pub(super) late_reasons: LateReasons,
}

impl PodCell {
    /// A record that says: the runtime had nothing of this pod when the list of `seq` began.
    pub(super) fn new(uid: PodUid, seq: Seq) -> Self {
        let (observation, _) = watch::channel(Observation {
            seq,
            ..Observation::default()
        });
        Self {
            uid,
            marks: Mutex::default(),
            observation,
        }
    }

    pub(super) fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Marks {
    /// When the containers that this observation calls unknown will have been so for long enough
    /// to be believed; `None` if all of them have. A runtime that has just been restarted may call
    /// unknown what it finds a moment later.
    pub(super) fn believed_at(&mut self, pod: &ObservedPod, now: Instant) -> Option<Instant> {
        let since: BTreeMap<_, _> = pod
            .containers
            .iter()
            .filter(|found| found.phase == ContainerPhase::Unknown)
            .map(|found| {
                let since = self.unknown_since.get(&found.id).copied().unwrap_or(now);
                (found.id.clone(), since)
            })
            .collect();
        self.unknown_since = since;
        let youngest = self.unknown_since.values().max()?;
        Some(*youngest + BELIEVE_UNKNOWN).filter(|at| *at > now)
    }

    /// True if a cause is newer than the last inspection.
    pub(super) fn is_dirty(&self, observed: Seq) -> bool {
        self.dirty >= observed && self.dirty > Seq::ZERO
    }
}
