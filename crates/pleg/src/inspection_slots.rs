//! Slots for inspections: at most [`AT_ONCE`] run at the same time, and pods that respond soon have
//! slots that no other pod holds for longer than [`SLOW`].

use std::{pin::pin, sync::Arc, time::Duration};

use rubelet_base::PodUid;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::inspection_queue::{InspectionQueue, Urgency};

/// Slots for inspections in their first second.
pub const QUICK_AT_ONCE: usize = 16;
/// Slots for inspections that take longer. When all of them are taken, an inspection that becomes
/// slow is aborted, and started again when one of them is free.
pub(super) const SLOW_AT_ONCE: usize = 32;
/// Slots for pods whose last inspection exceeded its deadline.
pub(super) const HANGING_AT_ONCE: usize = 4;
/// All slots together.
pub const AT_ONCE: usize = QUICK_AT_ONCE + SLOW_AT_ONCE + HANGING_AT_ONCE;
/// An inspection that takes longer than this is slow.
pub(super) const SLOW: Duration = Duration::from_secs(1);

/// The latency class of a pod: which slots its next inspection may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pace {
    /// Nothing is known against it.
    #[default]
    Quick,
    /// An inspection was slow and had to be aborted, and none has succeeded since.
    Slow,
    /// An inspection ran into its deadline, and none has succeeded since.
    Hangs,
}

/// The slots, and the pods that wait for one.
#[derive(Debug)]
pub(super) struct InspectionSlots {
    quick: InspectionQueue,
    slow: InspectionQueue,
    hanging: InspectionQueue,
}

impl InspectionSlots {
    pub(super) fn new() -> Self {
        Self {
            quick: InspectionQueue::new(QUICK_AT_ONCE),
            slow: InspectionQueue::new(SLOW_AT_ONCE),
            hanging: InspectionQueue::new(HANGING_AT_ONCE),
        }
    }

    /// Whether more pods hang than are inspected at a time.
    pub(super) fn many_hang(&self) -> bool {
        self.hanging.is_crowded()
    }

    pub(super) fn push(&mut self, uid: PodUid, pace: Pace, urgency: Urgency, now: Instant) {
        let queue = match pace {
            Pace::Quick => &mut self.quick,
            Pace::Slow => &mut self.slow,
            Pace::Hangs => &mut self.hanging,
        };
        queue.push(uid, urgency, now);
    }

    /// The next pod with its slot.
    pub(super) fn next(&mut self) -> Option<(PodUid, InspectionSlot)> {
        if let Some((uid, held)) = self.quick.next() {
            let slow = Some(self.slow.slots());
            return Some((uid, InspectionSlot { held, slow }));
        }
        let (uid, held) = self.slow.next().or_else(|| self.hanging.next())?;
        Some((uid, InspectionSlot { held, slow: None }))
    }
}

/// A slot, as long as this lives.
#[derive(Debug)]
pub(super) struct InspectionSlot {
    held: OwnedSemaphorePermit,
    /// The slots for the time after [`SLOW`], where the held one is for the first second only.
    slow: Option<Arc<Semaphore>>,
}

impl InspectionSlot {
    /// Waits for the inspection; `None` if that takes long and there is no slot for it. `freed` is
    /// called when a slot gets free before the inspection ends.
    pub(super) async fn wait<T>(
        mut self,
        inspection: impl Future<Output = T>,
        freed: impl FnOnce(),
    ) -> Option<T> {
        let mut inspection = pin!(inspection);
        if let Some(slow) = self.slow {
            if let Ok(done) = timeout(SLOW, &mut inspection).await {
                return Some(done);
            }
            // Without a slot the inspection is dropped, which cancels calls that only read. With
            // one, the assignment releases the quick slot.
            self.held = slow.try_acquire_owned().ok()?;
            freed();
        }
        Some(inspection.await)
    }
}

#[cfg(test)]
mod tests;
