//! The record that PLEG keeps of one pod.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use parking_lot::{Mutex, MutexGuard};
use rubelet_base::{ContainerId, PodName, PodUid, SandboxId, Seq};
use tokio::{sync::watch, time::Instant};

use super::{
    absorb::UnsettledStates, cause::InspectionCause, fingerprint::Fingerprint,
    observation::Observation,
};

/// One pod's record. Only PLEG writes the observation; other tasks mark the pod as changed.
#[derive(Debug)]
pub(super) struct TrackedPod {
    pub(super) uid: PodUid,
    /// Name for the record of lifecycle events; set by the pod's task.
    pub(super) name: OnceLock<PodName>,
    pending: Mutex<PendingChanges>,
    pub(super) observation: watch::Sender<Observation>,
}

/// Causes and identifiers that determine what the pod's next inspection reads.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// The number of the latest cause.
    pub(super) changed: Seq,
    /// The request for the next inspection.
    pub(super) request: InspectionRequest,
    /// The latest event that named the pod.
    pub(super) last_event: Seq,
    /// Fingerprint of the last observation, to compare lists with.
    pub(super) fingerprint: Fingerprint,
    /// Fingerprint by the list that is being read.
    pub(super) listed: Fingerprint,
    /// Failed inspections in a row.
    pub(super) failures: u32,
    /// True if identifiers may be missing: the next inspection lists first.
    pub(super) needs_list: bool,
    /// Sandboxes from events and from the responses to this agent's own calls.
    pub(super) learned_sandboxes: BTreeSet<SandboxId>,
    /// Containers from events and from the responses to this agent's own calls.
    pub(super) learned_containers: BTreeMap<ContainerId, SandboxId>,
    /// Containers that this agent removed: their final records are dropped.
    pub(super) removed_containers: BTreeSet<ContainerId>,
    /// Sandboxes that this agent stopped or removed: their records are not final any more.
    pub(super) changed_sandboxes: BTreeSet<SandboxId>,
    /// Containers whose records are not final, whatever their state.
    pub(super) reread: BTreeSet<ContainerId>,
    /// True if no record is final, as a list contradicts one of them.
    pub(super) reread_all: bool,
    /// Lifecycle events that the pod's task has not handled.
    pub(super) unsynced: Vec<UnsyncedEvent>,
    /// States that may change without an event.
    pub(super) unsettled: UnsettledStates,
}

/// A request for an inspection.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InspectionRequest {
    /// The reported cause.
    pub(super) cause: Option<InspectionCause>,
    /// Arrival of the first event.
    pub(super) event_at: Option<Instant>,
}

impl InspectionRequest {
    /// Merges another request for the same inspection.
    pub(super) fn join(&mut self, later: Self) {
        self.cause = match (self.cause, later.cause) {
            (Some(first), Some(later)) => Some(first.reported(later)),
            (first, later) => first.or(later),
        };
        self.event_at = match (self.event_at, later.event_at) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// A lifecycle event that its pod's task has not handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnsyncedEvent {
    pub(super) number: u64,
    /// The number of the observation that contains it.
    pub(super) seq: Seq,
    pub(super) delivered: Instant,
    /// Arrival of the runtime's event.
    pub(super) event_at: Option<Instant>,
    /// True once the pod's task has begun to handle it.
    pub(super) begun: bool,
}

impl TrackedPod {
    /// A record which states that the runtime had no sandbox or container of this pod when the list
    /// of `seq` began.
    pub(super) fn new(uid: PodUid, seq: Seq) -> Self {
        let (observation, _) = watch::channel(Observation {
            seq,
            ..Observation::default()
        });
        Self {
            uid,
            name: OnceLock::new(),
            pending: Mutex::default(),
            observation,
        }
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock()
    }
}

impl PendingChanges {
    /// True if a cause is newer than the inspection with this number.
    pub(super) fn is_dirty(&self, observed: Seq) -> bool {
        self.changed > observed
    }
}
