//! When a pod is inspected: the rule by which no cause is lost and no pod has two inspections at a
//! time. Its states are explored in `tests/inspection_state.rs`.

use rubelet_base::{Seq, seq::SeqSource};

/// One pod's causes and inspections, in this process's order. Whoever changes it holds its lock.
#[derive(Debug, Default)]
pub(super) struct InspectionState {
    /// The latest cause.
    dirty: Seq,
    /// An inspection is under way.
    inflight: bool,
}

impl InspectionState {
    /// Takes note of a cause of change that has had its effect. True if the pod must be queued now;
    /// during an inspection the end of that one sees to it.
    pub(super) fn mark(&mut self, order: &SeqSource) -> bool {
        self.dirty = order.next();
        !self.inflight
    }

    /// Claims the pod for an inspection. False if one is under way.
    pub(super) fn claim(&mut self) -> bool {
        !std::mem::replace(&mut self.inflight, true)
    }

    /// Whether an inspection is under way.
    pub(super) fn is_claimed(&self) -> bool {
        self.inflight
    }

    /// The number of the inspection that was claimed, taken before it reads anything: it sees what
    /// every cause with a smaller number did.
    pub(super) fn begin(&self, order: &SeqSource) -> Seq {
        order.next()
    }

    /// The inspection with this number has ended. True if a cause is newer: the pod must be queued.
    pub(super) fn end(&mut self, began: Seq) -> bool {
        self.give_up();
        self.is_dirty(began)
    }

    /// The inspection has failed; it must be repeated, whether there is a newer cause or not.
    pub(super) fn give_up(&mut self) {
        self.inflight = false;
    }

    /// Whether a cause is newer than the inspection with this number.
    pub(super) fn is_dirty(&self, observed: Seq) -> bool {
        self.dirty >= observed && self.dirty > Seq::ZERO
    }
}
