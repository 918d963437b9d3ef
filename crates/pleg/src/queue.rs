//! The one place where a pod waits for its inspection. It waits there for one of four things, which
//! [`WorkState`] describes: a slot of its latency class, the end of its task's steps, a time, or the
//! end of its inspection in progress, if that began before its latest cause.
//!
//! The idea is client-go's work queue: a key is added again while it is processed, waits once
//! however often it is added, or is added after a delay. Reads no clock: the time is an argument.
//!
//! Relists, queries for PIDs and the watches for missing events have timers of their own. No pod
//! waits there for an inspection: they find causes, and add the pod here when they have found one.

mod latency;
mod priority;
mod work;

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

use rubelet_base::Seq;
use tokio::time::Instant;

pub use self::latency::{FAST_SLOTS, MAX_INSPECTIONS};
use self::work::{RunningInspection, Work, WorkState};
pub(crate) use self::{
    latency::{HUNG_SLOTS, LatencyClass, SLOW, SLOW_SLOTS},
    priority::Priority,
    work::InspectionOutcome,
};

/// Number of latency classes.
const CLASSES: usize = LatencyClass::ALL.len();

/// Keys that wait for an inspection, and those that are being inspected.
#[derive(Debug)]
pub(crate) struct WorkQueue<K> {
    /// All keys that were added and not forgotten.
    works: HashMap<K, Work>,
    /// Free slots and ready keys of each latency class.
    classes: [ClassQueue<K>; CLASSES],
    /// Keys that are held or delayed, soonest first.
    delayed: BTreeSet<(Instant, K)>,
}

/// The free slots of a latency class, and the keys that wait for one.
#[derive(Debug)]
struct ClassQueue<K> {
    free: usize,
    /// By due time: when it became ready, and the handicap of its priority.
    ready: BTreeSet<(Instant, K)>,
}

impl<K: Clone + Ord + Hash> WorkQueue<K> {
    /// An empty queue with these numbers of slots for fast, slow and hung pods.
    pub(crate) fn new(slots: [usize; CLASSES]) -> Self {
        let class = |free| ClassQueue {
            free,
            ready: BTreeSet::new(),
        };
        Self {
            works: HashMap::new(),
            classes: slots.map(class),
            delayed: BTreeSet::new(),
        }
    }

    /// Requests an inspection for the cause with this number, whose change has already happened.
    /// Returns true if the key is ready now and was not before.
    pub(crate) fn add(&mut self, key: &K, priority: Priority, cause: Seq, now: Instant) -> bool {
        let work = self.works.entry(key.clone()).or_default();
        work.priority = work.priority.max(priority);
        match &mut work.state {
            WorkState::Running(running) => {
                running.cause = running.cause.max(cause);
                return false;
            }
            WorkState::Held { .. } => return false,
            WorkState::Idle | WorkState::Delayed { .. } | WorkState::Ready { .. } => {}
        }
        self.make_ready(key, now)
    }

    /// The next key and the class of its slot, if one is ready and its slot is free. The inspection
    /// takes its number afterwards, and [`Self::done`] ends it.
    pub(crate) fn get(&mut self, now: Instant) -> Option<(K, LatencyClass)> {
        while self.delayed.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, key)) = self.delayed.pop_first()
        {
            self.make_ready(&key, now);
        }
        for slot in LatencyClass::ALL {
            let class = &mut self.classes[slot as usize];
            while class.free > 0
                && let Some((_, key)) = class.ready.pop_first()
                && let Some(work) = self.works.get_mut(&key)
            {
                if let Some(until) = work.held_until().filter(|until| *until > now) {
                    work.state = WorkState::Held { until };
                    self.delayed.insert((until, key));
                    continue;
                }
                class.free -= 1;
                work.began_at = Some(now);
                work.state = WorkState::Running(RunningInspection {
                    slot,
                    priority: std::mem::take(&mut work.priority),
                    cause: Seq::ZERO,
                    forgotten: false,
                });
                return Some((key, slot));
            }
        }
        None
    }

    /// When the first held or delayed key becomes ready.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, _)| *at)
    }

    /// Exchanges the fast slot of an inspection that has become slow. Returns false if no slot for
    /// slow ones is free: the inspection must be aborted.
    pub(crate) fn become_slow(&mut self, key: &K) -> bool {
        let state = self.works.get_mut(key).map(|work| &mut work.state);
        let Some(WorkState::Running(running)) = state else {
            return false;
        };
        let slow = &mut self.classes[LatencyClass::Slow as usize];
        if slow.free == 0 {
            return false;
        }
        slow.free -= 1;
        self.classes[running.slot as usize].free += 1;
        running.slot = LatencyClass::Slow;
        true
    }

    /// Ends the inspection of a key and frees its slot. The outcome decides what it waits for next.
    pub(crate) fn done(&mut self, key: &K, outcome: InspectionOutcome, now: Instant) {
        let Some(work) = self.works.get_mut(key) else {
            return;
        };
        let WorkState::Running(running) = work.state else {
            return;
        };
        self.classes[running.slot as usize].free += 1;
        match work.end(running, outcome, now) {
            Some(at) if at > now => {
                work.state = WorkState::Delayed { at };
                self.delayed.insert((at, key.clone()));
            }
            Some(_) => {
                self.make_ready(key, now);
            }
            // A new pod with its UID may have a task already.
            None if running.forgotten && !work.busy => {
                self.works.remove(key);
            }
            None => {}
        }
    }

    /// The pod's task begins to execute steps: until [`Self::release`], its inspections begin at
    /// least a second apart.
    pub(crate) fn hold(&mut self, key: &K) {
        self.works.entry(key.clone()).or_default().busy = true;
    }

    /// The pod's task has executed its steps. Returns true if an inspection waited for that, which
    /// is ready now.
    pub(crate) fn release(&mut self, key: &K, now: Instant) -> bool {
        let Some(work) = self.works.get_mut(key) else {
            return false;
        };
        work.busy = false;
        matches!(work.state, WorkState::Held { .. }) && self.make_ready(key, now)
    }

    /// Drops the key of a removed pod. The slot of an inspection in progress stays taken to its end.
    pub(crate) fn forget(&mut self, key: &K) {
        let Some(mut work) = self.works.remove(key) else {
            return;
        };
        match &mut work.state {
            WorkState::Idle => {}
            WorkState::Ready { due } => {
                let ready = &mut self.classes[work.class as usize].ready;
                ready.remove(&(*due, key.clone()));
            }
            WorkState::Held { until: at } | WorkState::Delayed { at } => {
                self.delayed.remove(&(*at, key.clone()));
            }
            WorkState::Running(running) => {
                (running.cause, running.forgotten) = (Seq::ZERO, true);
                let running = Work {
                    state: work.state,
                    began_at: work.began_at,
                    ..Work::default()
                };
                self.works.insert(key.clone(), running);
            }
        }
    }

    /// True if the key is being inspected, or its task executes steps.
    pub(crate) fn is_active(&self, key: &K) -> bool {
        let work = self.works.get(key);
        work.is_some_and(|work| work.busy || work.is_running())
    }

    /// True if a key of this class is ready and no slot is free.
    pub(crate) fn is_crowded(&self, class: LatencyClass) -> bool {
        let class = &self.classes[class as usize];
        class.free == 0 && !class.ready.is_empty()
    }

    /// Start of the oldest inspection in progress.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let running = self.works.values().filter(|work| work.is_running());
        running.filter_map(|work| work.began_at).min()
    }

    /// Number of kept keys.
    pub(crate) fn len(&self) -> usize {
        self.works.len()
    }

    /// Has the key wait for a slot of its class. Returns true if it did not before.
    fn make_ready(&mut self, key: &K, now: Instant) -> bool {
        let Some(work) = self.works.get_mut(key) else {
            return false;
        };
        let due = now + work.priority.handicap();
        let ready = &mut self.classes[work.class as usize].ready;
        let was_ready = matches!(work.state, WorkState::Ready { .. });
        match work.state {
            // A key that has waited for long keeps its place, even if the new priority is higher.
            WorkState::Ready { due: old } if old <= due => return false,
            WorkState::Ready { due: old } => {
                ready.remove(&(old, key.clone()));
            }
            WorkState::Held { until: at } | WorkState::Delayed { at } => {
                self.delayed.remove(&(at, key.clone()));
            }
            WorkState::Idle | WorkState::Running(_) => {}
        }
        work.state = WorkState::Ready { due };
        ready.insert((due, key.clone()));
        !was_ready
    }
}
