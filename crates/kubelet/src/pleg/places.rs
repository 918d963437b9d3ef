//! How many pods are inspected at the same time: no more than [`AT_ONCE`], and those that answer soon
//! have places that no other pod holds for longer than [`SLOW`].

use std::{pin::pin, sync::Arc, time::Duration};

use rubelet_base::PodUid;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{
    begin::begin,
    inspect::inspect,
    lane::{Lane, Urgency},
    task::{Inspected, PlegTask},
};

/// So many inspections at the same time that have not taken longer than [`SLOW`] yet.
pub(crate) const QUICK_AT_ONCE: usize = 16;
/// So many that take longer. When all of these places are taken, an inspection that becomes slow is
/// broken off and made again when it is its turn for one of them.
pub(crate) const SLOW_AT_ONCE: usize = 32;
/// So many of pods whose last inspection ran into its deadline.
pub(crate) const HANGING_AT_ONCE: usize = 4;
/// So many in all.
#[cfg(test)]
pub(crate) const AT_ONCE: usize = QUICK_AT_ONCE + SLOW_AT_ONCE + HANGING_AT_ONCE;
/// An inspection that takes longer than this is slow.
pub(crate) const SLOW: Duration = Duration::from_secs(1);
/// A pod whose task is at work is inspected this often at most.
const WHILE_BUSY: Duration = Duration::from_secs(1);

/// Which places a pod's next inspection may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pace {
    /// Nothing is known against it.
    #[default]
    Quick,
    /// An inspection was slow and had to be broken off, and none has succeeded since.
    Slow,
    /// An inspection ran into its deadline, and none has succeeded since.
    Hangs,
}

/// The places, and who waits for them.
#[derive(Debug)]
pub(super) struct Places {
    quick: Lane,
    slow: Lane,
    hanging: Lane,
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            quick: Lane::new(QUICK_AT_ONCE),
            slow: Lane::new(SLOW_AT_ONCE),
            hanging: Lane::new(HANGING_AT_ONCE),
        }
    }

    /// Whether more pods hang than are asked about at a time.
    pub(super) fn many_hang(&self) -> bool {
        self.hanging.is_crowded()
    }

    fn push(&mut self, uid: PodUid, pace: Pace, urgency: Urgency, now: Instant) {
        let lane = match pace {
            Pace::Quick => &mut self.quick,
            Pace::Slow => &mut self.slow,
            Pace::Hangs => &mut self.hanging,
        };
        lane.push(uid, urgency, now);
    }

    /// A pod whose turn it is, with its place.
    fn next(&mut self) -> Option<(PodUid, Place)> {
        if let Some((uid, held)) = self.quick.next() {
            let slow = Some(self.slow.places());
            return Some((uid, Place { held, slow }));
        }
        let (uid, held) = self.slow.next().or_else(|| self.hanging.next())?;
        Some((uid, Place { held, slow: None }))
    }
}

/// A place, as long as this lives.
#[derive(Debug)]
struct Place {
    held: OwnedSemaphorePermit,
    /// It is one for [`SLOW`] only. These are the places for the time after that.
    slow: Option<Arc<Semaphore>>,
}

impl Place {
    /// Waits for the inspection; `None` if that takes long and there is no place for it. `freed` is
    /// called when a place gets free before the inspection ends.
    async fn wait<T>(
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

impl PlegTask {
    pub(super) fn start_inspections(&mut self) {
        let now = Instant::now();
        for (uid, urgency) in self.handle.shared.take_queue() {
            let cell = self.handle.shared.known(&uid);
            if let Some(pace) = cell.map(|cell| cell.marks().pace) {
                self.places.push(uid, pace, urgency, now);
            }
        }
        while let Some((uid, place)) = self.places.next() {
            self.start_inspection(&uid, place);
        }
    }

    fn start_inspection(&mut self, uid: &PodUid, place: Place) {
        let Some(cell) = self.handle.shared.known(uid) else {
            return;
        };
        {
            let mut marks = cell.marks();
            if marks.turn.is_claimed() {
                return;
            }
            if let Some(began) = marks.began_at.filter(|_| marks.busy) {
                let next = began + WHILE_BUSY;
                if next > Instant::now() {
                    marks.held = true;
                    self.look_again(&cell, &mut marks, next);
                    return;
                }
            }
            marks.turn.claim();
            marks.held = false;
            // What this one sees decides on the next.
            if let Some(at) = marks.look_again.take() {
                self.retries.remove(&(at, cell.uid.clone()));
            }
        }
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        self.inspections.spawn(async move {
            let (began, request, plan) = begin(&handle, &cell);
            let cause = request.cause.map_or("recheck", super::Cause::as_str);
            let (metrics, at) = (&handle.shared.metrics.pleg, Instant::now());
            metrics.inspection(cause);
            let look = inspect(&runtime, &cell.uid, plan);
            let result = place.wait(look, || handle.shared.wake.notify_one()).await;
            if let Some(result) = &result {
                let took = at.elapsed().as_secs_f64();
                metrics.pod_relist_duration.observe(took);
                handle.heard(result.as_ref().err());
            }
            Inspected {
                cell,
                began,
                request,
                result,
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::pending};

    use tokio::time::sleep;

    use super::*;

    fn place(places: &mut Places, uid: &str, pace: Pace) -> Option<Place> {
        places.push(uid.into(), pace, Urgency::Change, Instant::now());
        places.next().map(|(_, place)| place)
    }

    #[tokio::test(start_paused = true)]
    async fn what_becomes_slow_frees_its_quick_place_or_is_broken_off() {
        let mut places = Places::new();
        let (freed, began) = (Cell::new(0), Instant::now());
        let count = || freed.set(freed.get() + 1);
        let soon = place(&mut places, "soon", Pace::Quick).unwrap();
        assert_eq!(soon.wait(async { 1 }, count).await, Some(1));
        let late = place(&mut places, "late", Pace::Quick).unwrap();
        let long = async {
            sleep(SLOW * 5).await;
            2
        };
        assert_eq!(late.wait(long, count).await, Some(2));
        assert_eq!(freed.get(), 1);

        let slow: Vec<_> = (0..SLOW_AT_ONCE)
            .map(|number| place(&mut places, &format!("slow-{number}"), Pace::Slow).unwrap())
            .collect();
        let began = began + SLOW * 5;
        let one_more = place(&mut places, "one-more", Pace::Quick).unwrap();
        assert_eq!(one_more.wait(pending::<()>(), count).await, None);
        assert_eq!((freed.get(), began.elapsed()), (1, SLOW));
        assert!(place(&mut places, "waits", Pace::Slow).is_none());
        drop(slow);
        assert!(places.next().is_some(), "it is its turn");
    }

    #[test]
    fn pods_of_one_pace_do_not_take_the_places_of_another() {
        let mut places = Places::new();
        let mut held = Vec::new();
        for (pace, most) in [
            (Pace::Hangs, HANGING_AT_ONCE),
            (Pace::Slow, SLOW_AT_ONCE),
            (Pace::Quick, QUICK_AT_ONCE),
        ] {
            for number in 0..2 * most {
                held.extend(place(&mut places, &format!("{pace:?}-{number}"), pace));
            }
        }
        assert_eq!(held.len(), AT_ONCE);
        assert!(places.many_hang());
    }
}
