//! Slots for inspections: at most [`MAX_INSPECTIONS`] run at the same time, and pods whose
//! inspections are fast have slots that no other pod holds for longer than [`SLOW`].

use std::{pin::pin, sync::Arc, time::Duration};

use rubelet_base::PodUid;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::inspection_queue::{InspectionQueue, Priority};

/// Slots for inspections in their first second.
pub const FAST_SLOTS: usize = 16;
/// Slots for inspections that take longer. While all of them are taken, an inspection that becomes
/// slow is aborted, and is repeated when one of them is free.
pub(super) const SLOW_SLOTS: usize = 32;
/// Slots for pods whose last inspection exceeded its deadline.
pub(super) const HUNG_SLOTS: usize = 4;
/// All slots together.
pub const MAX_INSPECTIONS: usize = FAST_SLOTS + SLOW_SLOTS + HUNG_SLOTS;
/// An inspection that takes longer than this is slow.
pub(super) const SLOW: Duration = Duration::from_secs(1);

/// The latency class of a pod, which determines the slots that its next inspection may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LatencyClass {
    /// No inspection of it was slow.
    #[default]
    Fast,
    /// An inspection was slow and was aborted, and none has succeeded since.
    Slow,
    /// An inspection exceeded its deadline, and none has succeeded since.
    Hung,
}

/// The slots, and the pods that wait for one.
#[derive(Debug)]
pub(super) struct InspectionSlots {
    fast: InspectionQueue,
    slow: InspectionQueue,
    hung: InspectionQueue,
}

impl InspectionSlots {
    pub(super) fn new() -> Self {
        Self {
            fast: InspectionQueue::new(FAST_SLOTS),
            slow: InspectionQueue::new(SLOW_SLOTS),
            hung: InspectionQueue::new(HUNG_SLOTS),
        }
    }

    /// True if more pods hang than are inspected at a time.
    pub(super) fn hung_pods_wait(&self) -> bool {
        self.hung.is_crowded()
    }

    pub(super) fn push(
        &mut self,
        uid: PodUid,
        latency: LatencyClass,
        priority: Priority,
        now: Instant,
    ) {
        let queue = match latency {
            LatencyClass::Fast => &mut self.fast,
            LatencyClass::Slow => &mut self.slow,
            LatencyClass::Hung => &mut self.hung,
        };
        queue.push(uid, priority, now);
    }

    /// The next pod with its slot.
    pub(super) fn next(&mut self) -> Option<(PodUid, InspectionSlot)> {
        if let Some((uid, held)) = self.fast.next() {
            let slow = Some(self.slow.slots());
            return Some((uid, InspectionSlot { held, slow }));
        }
        let (uid, held) = self.slow.next().or_else(|| self.hung.next())?;
        Some((uid, InspectionSlot { held, slow: None }))
    }
}

/// A slot, released when this is dropped.
#[derive(Debug)]
pub(super) struct InspectionSlot {
    held: OwnedSemaphorePermit,
    /// The slots for the time after [`SLOW`]; `None` if the held slot has no time limit.
    slow: Option<Arc<Semaphore>>,
}

impl InspectionSlot {
    /// Runs the inspection; `None` if it becomes slow and no slot for slow ones is free. `freed` is
    /// called when the fast slot is released before the inspection ends.
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
            // one, the assignment releases the fast slot.
            self.held = slow.try_acquire_owned().ok()?;
            freed();
        }
        Some(inspection.await)
    }
}

#[cfg(test)]
mod tests;
