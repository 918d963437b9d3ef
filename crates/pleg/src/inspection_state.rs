//! The state of a pod in the inspection queue: no cause is lost, and at most one inspection of a
//! pod runs at a time. `tests/inspection_state.rs` explores the interleavings.

use rubelet_base::{Seq, seq::SeqSource};

/// The latest cause of a pod and whether it is being inspected (client-go's work queue: dirty,
/// processing). Changed under the lock of the pod only.
#[derive(Debug, Default)]
pub(super) struct InspectionState {
    /// The latest cause.
    dirty: Seq,
    /// An inspection is in progress.
    inflight: bool,
}

impl InspectionState {
    /// Records a cause whose change has already happened. Returns true if the pod must be queued
    /// now; during an inspection, [`Self::end`] requests that instead.
    pub(super) fn mark(&mut self, order: &SeqSource) -> bool {
        self.dirty = order.next();
        !self.inflight
    }

    /// Claims the pod for an inspection. Returns false if one is in progress.
    pub(super) fn claim(&mut self) -> bool {
        !std::mem::replace(&mut self.inflight, true)
    }

    /// True while an inspection is in progress.
    pub(super) fn is_claimed(&self) -> bool {
        self.inflight
    }

    /// Takes the number of the claimed inspection before it reads anything: the inspection sees the
    /// effect of every cause with a smaller number.
    pub(super) fn begin(&self, order: &SeqSource) -> Seq {
        order.next()
    }

    /// Ends the inspection with this number. Returns true if a cause is newer: the pod must be
    /// queued.
    pub(super) fn end(&mut self, began: Seq) -> bool {
        self.give_up();
        self.is_dirty(began)
    }

    /// Ends an inspection that failed; it must be repeated, whether there is a newer cause or not.
    pub(super) fn give_up(&mut self) {
        self.inflight = false;
    }

    /// True if a cause is newer than the inspection with this number.
    pub(super) fn is_dirty(&self, observed: Seq) -> bool {
        self.dirty >= observed && self.dirty > Seq::ZERO
    }
}
