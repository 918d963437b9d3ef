//! How many pods are inspected at the same time: no more than [`AT_ONCE`], and those that answer soon
//! have slots that no other pod holds for longer than [`SLOW`].

use std::{pin::pin, sync::Arc, time::Duration};

use rubelet_base::PodUid;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::inspection_queue::{InspectionQueue, Urgency};

/// How many inspections at the same time that have not taken longer than a second yet.
pub const QUICK_AT_ONCE: usize = 16;
/// How many that take longer. When all of these slots are taken, an inspection that becomes slow is
/// aborted, and started again when one of them is free.
pub(super) const SLOW_AT_ONCE: usize = 32;
/// How many of pods whose last inspection ran into its deadline.
pub(super) const HANGING_AT_ONCE: usize = 4;
/// How many in all.
pub const AT_ONCE: usize = QUICK_AT_ONCE + SLOW_AT_ONCE + HANGING_AT_ONCE;
/// An inspection that takes longer than this is slow.
pub(super) const SLOW: Duration = Duration::from_secs(1);

/// Which slots a pod's next inspection may have.
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

/// The slots, and who waits for them.
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
    /// It is one for [`SLOW`] only. These are the slots for the time after that.
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
            self.held = slow.try_acquire_owned().ok()?;
            freed();
        }
        Some(inspection.await)
    }
}

#[cfg(test)]
mod tests;
