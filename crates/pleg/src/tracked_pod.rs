//! The record that PLEG keeps of one pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use rubelet_base::{ContainerId, PodName, PodUid, SandboxId, Seq};
use rubelet_pod_plan::{ContainerPhase, ObservedPod};
use tokio::{sync::watch, time::Instant};

use super::{
    cause::Cause, fingerprint::Fingerprint, inspection_queue::Urgency, inspection_slots::Pace,
    inspection_state::InspectionState, kernel_marks::KernelMarks, late_reason::LateReasons,
    observation::Observation, rechecks::Rechecks,
};

/// A container that was unknown for this long is unknown.
const BELIEVE_UNKNOWN: Duration = Duration::from_secs(1);

/// One pod's record. The inspection task writes it, everyone else marks it.
#[derive(Debug)]
pub(super) struct TrackedPod {
    pub(super) uid: PodUid,
    /// For the record; set by the pod's task.
    pub(super) name: OnceLock<PodName>,
    marks: Mutex<Marks>,
    pub(super) observation: watch::Sender<Observation>,
}

/// Changes and identifiers that wait for the pod's next inspection.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The latest cause, and whether an inspection is under way.
    pub(super) inspection: InspectionState,
    /// When the last inspection began.
    pub(super) began_at: Option<Instant>,
    /// When the pod is inspected again without being marked.
    pub(super) reinspect_at: Option<Instant>,
    /// True while the pod's task works: its effects are inspected when it is done.
    pub(super) busy: bool,
    /// An inspection waits for the end of that work.
    pub(super) held: bool,
    /// The request for the next inspection.
    pub(super) request: Request,
    /// The latest event that named the pod.
    pub(super) last_event: Seq,
    /// State of the last observation, to compare lists with.
    pub(super) fingerprint: Fingerprint,
    /// State by the list that is being read.
    pub(super) listed: Fingerprint,
    /// Failed inspections in a row.
    pub(super) failures: u32,
    /// How long its inspections take.
    pub(super) pace: Pace,
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
    /// Containers whose records are not final, whatever their state.
    pub(super) reread: BTreeSet<ContainerId>,
    /// No record is final: a list contradicts one of them.
    pub(super) reread_all: bool,
    /// Lifecycle events that the pod's task has not worked on, and when they were delivered.
    pub(super) unsynced: Vec<UnsyncedEvent>,
    /// Containers that the runtime lost track of, and since when.
    pub(super) unknown_since: BTreeMap<ContainerId, Instant>,
    /// Exits whose reason may still change.
    pub(super) late_reasons: LateReasons,
    /// States that change without an event.
    pub(super) rechecks: Rechecks,
    /// What the kernel reported of its containers.
    pub(super) kernel: KernelMarks,
}

/// A request for an inspection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Request {
    /// The cause to name.
    pub(super) cause: Option<Cause>,
    /// When the first event came.
    pub(super) event_at: Option<Instant>,
    /// The urgency of the most urgent cause.
    pub(super) urgency: Urgency,
}

impl Request {
    /// Merges another request for the same inspection.
    pub(super) fn join(&mut self, later: Self) {
        self.cause = match (self.cause, later.cause) {
            (Some(first), Some(later)) => Some(first.named(later)),
            (first, later) => first.or(later),
        };
        self.event_at = match (self.event_at, later.event_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.urgency = self.urgency.max(later.urgency);
    }
}

/// A lifecycle event that its pod's task has not worked on.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsyncedEvent {
    pub(super) number: u64,
    /// The number of the observation that it came with.
    pub(super) seq: Seq,
    pub(super) delivered: Instant,
    /// When the runtime's event came.
    pub(super) event_at: Option<Instant>,
    /// The pod's task has begun to work on it.
    pub(super) begun: bool,
}

impl TrackedPod {
    /// A record which states that the runtime had nothing of this pod when the list of `seq` began.
    pub(super) fn new(uid: PodUid, seq: Seq) -> Self {
        let (observation, _) = watch::channel(Observation {
            seq,
            ..Observation::default()
        });
        Self {
            uid,
            name: OnceLock::new(),
            marks: Mutex::default(),
            observation,
        }
    }

    pub(super) fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock()
    }
}

impl Marks {
    /// When the containers that this observation calls unknown will have been so for long enough
    /// to be believed; `None` if all of them have. A runtime that has just been restarted may call
    /// unknown what it finds a moment later.
    pub(super) fn unknown_until(&mut self, pod: &ObservedPod, now: Instant) -> Option<Instant> {
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
        self.inspection.is_dirty(observed)
    }
}
