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

/// The priority of an inspection, in ascending order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// A relist differs, or a state is checked again: no task waits for it.
    #[default]
    Reconcile,
    /// The pod has changed.
    Change,
    /// A container has exited, and may have to be restarted.
    Stopped,
    /// The pod's task can't continue without it.
    Waiting,
}

impl Priority {
    /// The delay of a pod relative to one that was queued at the same time with the highest
    /// priority. The higher priority comes first, and no pod starves.
    fn handicap(self) -> Duration {
        Duration::from_secs(match self {
            Self::Waiting => 0,
            Self::Stopped => 1,
            Self::Change => 5,
            Self::Reconcile => 30,
        })
    }
}

/// A number of slots, and the pods that wait for one. A pod is queued at most once.
#[derive(Debug)]
pub(super) struct InspectionQueue {
    slots: Arc<Semaphore>,
    /// Pods waiting for a slot, by due time and then by arrival.
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

    /// The slots, for inspections of another queue that may take one of them.
    pub(super) fn slots(&self) -> Arc<Semaphore> {
        Arc::clone(&self.slots)
    }

    /// Queues the pod, or moves it forward if it is queued with a lower priority.
    pub(super) fn push(&mut self, uid: PodUid, priority: Priority, now: Instant) {
        let at = now + priority.handicap();
        if let Some((old, came)) = self.order.get(&uid).copied() {
            // A pod that has waited for long keeps its place, even if the new priority is higher.
            if old <= at {
                return;
            }
            self.waiting.remove(&(old, came, uid.clone()));
        }
        self.came += 1;
        self.order.insert(uid.clone(), (at, self.came));
        self.waiting.insert((at, self.came, uid));
    }

    /// True if a pod waits because all slots are taken.
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
    fn the_highest_priority_comes_first_and_equal_ones_in_order_of_arrival() {
        let (mut queue, now) = (InspectionQueue::new(1), Instant::now());
        for (uid, priority) in [
            ("list", Priority::Reconcile),
            ("started", Priority::Change),
            ("ended-1", Priority::Stopped),
            ("task", Priority::Waiting),
            ("ended-2", Priority::Stopped),
        ] {
            queue.push(uid.into(), priority, now);
        }
        let order = ["task", "ended-1", "ended-2", "started", "list"];
        assert_eq!(names(&mut queue), order);
    }

    #[test]
    fn a_pod_is_queued_once_with_its_highest_priority() {
        let (mut queue, now) = (InspectionQueue::new(1), Instant::now());
        queue.push("a".into(), Priority::Stopped, now);
        for priority in [Priority::Reconcile, Priority::Waiting, Priority::Change] {
            queue.push("b".into(), priority, now);
        }
        assert_eq!(names(&mut queue), ["b", "a"]);
        assert!(queue.order.is_empty());
    }

    #[test]
    fn no_pod_is_delayed_for_ever() {
        let (mut queue, start) = (InspectionQueue::new(1), Instant::now());
        queue.push("list".into(), Priority::Reconcile, start);
        for second in 0..60 {
            let now = start + Duration::from_secs(second);
            queue.push("busy".into(), Priority::Waiting, now);
            let (uid, _) = queue.next().expect("two wait");
            if uid.as_str() == "list" {
                assert_eq!(second, 30);
                return;
            }
        }
        panic!("the pod was never inspected");
    }

    #[test]
    fn no_more_slots_are_given_away_than_there_are() {
        let (mut queue, now) = (InspectionQueue::new(2), Instant::now());
        for uid in ["a", "b", "c"] {
            queue.push(uid.into(), Priority::Change, now);
        }
        let taken = [queue.next(), queue.next()];
        assert!(queue.next().is_none());
        drop(taken);
        assert_eq!(names(&mut queue), ["c"]);
    }
}
