//! Pods waiting for inspection, by priority, for when more of them wait than there are slots.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use rubelet_base::PodUid;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// The priority of an inspection, the lowest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// A list differs, or something is checked again: nobody waits for it.
    #[default]
    Reconcile,
    /// Something has changed.
    Change,
    /// A container has ended, and is perhaps to be started again.
    Stopped,
    /// The pod's task can't continue without it.
    Waiting,
}

impl Urgency {
    /// How much later a pod comes than one that was queued at the same time and whose task waits.
    /// So the more urgent one is first, and none starves.
    fn patience(self) -> Duration {
        Duration::from_secs(match self {
            Self::Waiting => 0,
            Self::Stopped => 1,
            Self::Change => 5,
            Self::Reconcile => 30,
        })
    }
}

/// A number of slots, and the pods that wait for one. Each is in it at most once.
#[derive(Debug)]
pub(super) struct InspectionQueue {
    slots: Arc<Semaphore>,
    /// Pods waiting for a slot, by the time of their turn and then by arrival.
    waiting: BTreeSet<(Instant, u64, PodUid)>,
    order: HashMap<PodUid, (Instant, u64)>,
    came: u64,
}

impl InspectionQueue {
    /// A queue for this number of slots.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            waiting: BTreeSet::new(),
            order: HashMap::new(),
            came: 0,
        }
    }

    /// The slots, for others who may have one of them.
    pub(super) fn slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.slots)
    }

    /// The pod waits from `now` on, if it does not wait already, or is more urgent than it was.
    pub(super) fn push(&mut self, uid: PodUid, urgency: Urgency, now: Instant) {
        let at = now + urgency.patience();
        if let Some((old, came)) = self.order.get(&uid).copied() {
            // A pod that has waited for long keeps its place, even if the new cause is more urgent.
            if old <= at {
                return;
            }
            self.waiting.remove(&(old, came, uid.clone()));
        }
        self.came += 1;
        self.order.insert(uid.clone(), (at, self.came));
        self.waiting.insert((at, self.came, uid));
    }

    /// Whether a pod waits although all slots are taken.
    pub(super) fn is_crowded(&self) -> bool {
        !self.waiting.is_empty() && self.slots.available_permits() == 0
    }

    /// The next pod with its slot, if there is one of each.
    pub(super) fn next(&mut self) -> Option<(PodUid, OwnedSemaphorePermit)> {
        if self.waiting.is_empty() {
            return None;
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let (.., uid) = self.waiting.pop_first()?;
        self.order.remove(&uid);
        Some((uid, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(queue: &mut InspectionQueue) -> Vec<String> {
        std::iter::from_fn(|| queue.next())
            .map(|(uid, _)| uid.to_string())
            .collect()
    }

    #[test]
    fn the_most_urgent_comes_first_and_those_that_are_equal_in_their_order() {
        let (mut queue, now) = (InspectionQueue::new(1), Instant::now());
        for (uid, urgency) in [
            ("list", Urgency::Reconcile),
            ("started", Urgency::Change),
            ("ended-1", Urgency::Stopped),
            ("task", Urgency::Waiting),
            ("ended-2", Urgency::Stopped),
        ] {
            queue.push(uid.into(), urgency, now);
        }
        let order = ["task", "ended-1", "ended-2", "started", "list"];
        assert_eq!(names(&mut queue), order);
    }

    #[test]
    fn a_pod_waits_once_and_for_its_most_urgent_cause() {
        let (mut queue, now) = (InspectionQueue::new(1), Instant::now());
        queue.push("a".into(), Urgency::Stopped, now);
        for urgency in [Urgency::Reconcile, Urgency::Waiting, Urgency::Change] {
            queue.push("b".into(), urgency, now);
        }
        assert_eq!(names(&mut queue), ["b", "a"]);
        assert!(queue.order.is_empty());
    }

    #[test]
    fn nobody_is_put_off_for_ever() {
        let (mut queue, start) = (InspectionQueue::new(1), Instant::now());
        queue.push("list".into(), Urgency::Reconcile, start);
        for second in 0..60 {
            let now = start + Duration::from_secs(second);
            queue.push("busy".into(), Urgency::Waiting, now);
            let (uid, _) = queue.next().expect("two wait");
            if uid.as_str() == "list" {
                assert_eq!(second, 30);
                return;
            }
        }
        panic!("it was put off");
    }

    #[test]
    fn no_more_than_the_places_are_given_away() {
        let (mut queue, now) = (InspectionQueue::new(2), Instant::now());
        for uid in ["a", "b", "c"] {
            queue.push(uid.into(), Urgency::Change, now);
        }
        let taken = [queue.next(), queue.next()];
        assert!(queue.next().is_none());
        drop(taken);
        assert_eq!(names(&mut queue), ["c"]);
    }
}
