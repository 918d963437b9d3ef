//! The newest lifecycle events, for debugging of PLEG.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use jiff::Timestamp;
use rubelet_base::{PodName, PodUid};
use rubelet_node_state::board::Board;

use super::{cause::InspectionCause, lifecycle::LifecycleKind};

/// Number of kept events.
const KEEP: u64 = 512;

/// One lifecycle event and its delays.
#[derive(Debug, Clone, PartialEq)]
pub struct LifecycleEvent {
    /// Grows by one with each event of this process.
    pub number: u64,
    /// Time of its delivery to the pod's task, by the wall clock.
    pub at: Timestamp,
    /// UID of the pod.
    pub uid: PodUid,
    /// Its name; `None` for a pod that has no task yet.
    pub pod: Option<PodName>,
    /// Kind of the change.
    pub kind: LifecycleKind,
    /// Name of the container; `None` for a sandbox or the pod as a whole.
    pub container: Option<Box<str>>,
    /// The runtime's identifier of the container or the sandbox; empty for the pod as a whole.
    pub id: Box<str>,
    /// Cause of the inspection that found it.
    pub cause: InspectionCause,
    /// Time from the runtime's timestamp of the change to the delivery, both by wall clocks; 0 if
    /// the timestamp is in the future. `None` where the runtime has no timestamp.
    pub from_stamp: Option<Duration>,
    /// Time from the arrival of the runtime's event to the delivery; `None` without an event.
    pub from_event: Option<Duration>,
    /// Time from the delivery until the pod's task began to work on it; `None` until then.
    pub to_start: Option<Duration>,
    /// Time from the delivery to the end of that work; `None` until then.
    pub to_sync: Option<Duration>,
}

/// The newest lifecycle events by number.
#[derive(Debug, Default)]
pub struct LifecycleRecord {
    board: Board<u64, LifecycleEvent>,
    last: AtomicU64,
}

impl LifecycleRecord {
    /// The events; an event is replaced when one of its delays becomes known.
    #[must_use]
    pub fn board(&self) -> &Board<u64, LifecycleEvent> {
        &self.board
    }

    /// Adds an event and gives it its number.
    pub(super) fn add(&self, mut event: LifecycleEvent) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        event.number = number;
        self.board.set(number, event);
        if let Some(old) = number.checked_sub(KEEP) {
            self.board.remove(&old);
        }
        number
    }

    /// Updates an event, if it is still kept.
    pub(super) fn change(&self, number: u64, change: impl FnOnce(&mut LifecycleEvent)) {
        if let Some(event) = self.board.get(&number) {
            let mut event = LifecycleEvent::clone(&event);
            change(&mut event);
            self.board.set(number, event);
        }
    }
}
