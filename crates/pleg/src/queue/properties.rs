//! What holds whatever is added, ends, is held or is forgotten, in any order: no cause is lost, a
//! free slot is used, no slot is taken twice, and no key starves.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;
use rubelet_base::seq::SeqSource;

use super::*;

const KEYS: usize = 5;
const SLOTS: [usize; CLASSES] = [2, 1, 1];
const WHILE_BUSY: Duration = Duration::from_secs(1);
/// No other key that was added so much later comes before a key that only waits for a slot.
const LONGEST: Duration = Duration::from_secs(30);

/// What happens. Keys are numbers, times are in milliseconds from now.
#[derive(Debug, Clone, Copy)]
enum Act {
    Add(usize, Priority),
    Get,
    TakeNumber(usize),
    BecomeSlow(usize),
    Complete(usize, Option<u64>),
    Withhold(usize, u64),
    Fail(usize, u64, bool),
    Abort(usize),
    Hold(usize),
    Release(usize),
    Forget(usize),
    Pass(u64),
}

fn acts() -> impl Strategy<Value = Act> {
    let key = || 0..KEYS;
    let priority = prop_oneof![
        Just(Priority::Reconcile),
        Just(Priority::Change),
        Just(Priority::Stopped),
        Just(Priority::Waiting)
    ];
    let millis = || prop_oneof![Just(0), 1..3000_u64];
    prop_oneof![
        6 => (key(), priority).prop_map(|(key, priority)| Act::Add(key, priority)),
        6 => Just(Act::Get),
        3 => key().prop_map(Act::TakeNumber),
        1 => key().prop_map(Act::BecomeSlow),
        4 => (key(), proptest::option::of(millis())).prop_map(|(key, at)| Act::Complete(key, at)),
        1 => (key(), millis()).prop_map(|(key, at)| Act::Withhold(key, at)),
        2 => (key(), millis(), any::<bool>()).prop_map(|(key, at, hung)| Act::Fail(key, at, hung)),
        1 => key().prop_map(Act::Abort),
        2 => key().prop_map(Act::Hold),
        2 => key().prop_map(Act::Release),
        1 => key().prop_map(Act::Forget),
        4 => prop_oneof![1..2000_u64, Just(31_000)].prop_map(Act::Pass),
    ]
}

/// What follows for a key from what was done with it.
#[derive(Debug, Clone, Copy, Default)]
struct Pod {
    class: LatencyClass,
    /// The latest cause, and the number of the last inspection whose result counts.
    cause: Seq,
    covered: Seq,
    /// When the last inspection is to be repeated; `None` after the next cause.
    again_at: Option<Instant>,
    /// The slot of the inspection in progress, and its number once it has one.
    running: Option<(LatencyClass, Option<Seq>)>,
    forgotten: bool,
    busy: bool,
    began_at: Option<Instant>,
    /// Since when an inspection is wanted, and since when it only waits for a slot.
    wanted_since: Option<Instant>,
    ready_since: Option<Instant>,
}

impl Pod {
    fn settle(&mut self, now: Instant) {
        let due = self.again_at.map(|at| at <= now);
        let wanted = due.unwrap_or(self.cause > self.covered) && self.running.is_none();
        let held = self.began_at.filter(|_| self.busy);
        let ready = wanted && held.is_none_or(|at| now >= at + WHILE_BUSY);
        self.wanted_since = wanted.then(|| self.wanted_since.unwrap_or(now));
        self.ready_since = ready.then(|| self.ready_since.unwrap_or(now));
    }
}

struct Scene {
    queue: WorkQueue<usize>,
    pods: BTreeMap<usize, Pod>,
    seq: SeqSource,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        Self {
            queue: WorkQueue::new(SLOTS),
            pods: BTreeMap::new(),
            seq: SeqSource::default(),
            now: Instant::now(),
        }
    }

    fn act(&mut self, act: Act) {
        let now = self.now;
        let after = |millis| now + Duration::from_millis(millis);
        match act {
            Act::Add(key, priority) => {
                let cause = self.seq.next();
                let pod = self.pods.entry(key).or_default();
                (pod.cause, pod.again_at) = (cause, None);
                pod.settle(now);
                self.queue.add(&key, priority, cause, now);
            }
            Act::Get => {
                self.get();
            }
            Act::TakeNumber(key) => {
                let number = self.seq.next();
                if let Some((_, began @ None)) = self.running(key) {
                    *began = Some(number);
                }
            }
            Act::BecomeSlow(key) => self.become_slow(key),
            Act::Complete(key, at) => {
                let recheck_at = at.map(after);
                self.end(key, |began| InspectionOutcome::Complete {
                    began,
                    recheck_at,
                });
            }
            Act::Withhold(key, at) => {
                let until = after(at);
                self.end(key, |began| InspectionOutcome::Withheld { began, until });
            }
            Act::Fail(key, at, hung) => {
                let retry_at = after(at);
                self.end(key, |_| InspectionOutcome::Failed { retry_at, hung });
            }
            Act::Abort(key) => self.end(key, |_| InspectionOutcome::Aborted),
            Act::Hold(key) => {
                self.pods.entry(key).or_default().busy = true;
                self.queue.hold(&key);
            }
            Act::Release(key) => {
                if let Some(pod) = self.pods.get_mut(&key) {
                    pod.busy = false;
                    pod.settle(now);
                }
                self.queue.release(&key, now);
            }
            Act::Forget(key) => {
                self.queue.forget(&key);
                if let Some(old) = self.pods.remove(&key).filter(|pod| pod.running.is_some()) {
                    let pod = Pod {
                        running: old.running,
                        forgotten: true,
                        began_at: old.began_at,
                        ..Pod::default()
                    };
                    self.pods.insert(key, pod);
                }
            }
            Act::Pass(millis) => {
                // As the task does, which wakes at these times.
                while let Some(at) = self.queue.next_at().filter(|at| *at <= after(millis)) {
                    self.now = at;
                    self.get();
                }
                self.now = after(millis);
            }
        }
        for (key, pod) in &self.pods {
            let active = pod.busy || pod.running.is_some();
            assert_eq!(self.queue.is_active(key), active, "{key} after {act:?}");
        }
        assert!(self.queue.len() <= self.pods.len());
    }

    fn running(&mut self, key: usize) -> Option<&mut (LatencyClass, Option<Seq>)> {
        self.pods.get_mut(&key)?.running.as_mut()
    }

    /// Number of inspections that have a slot of this class.
    fn taken(&self, class: LatencyClass) -> usize {
        let slots = self.pods.values().filter_map(|pod| pod.running);
        slots.filter(|(slot, _)| *slot == class).count()
    }

    fn get(&mut self) -> Option<usize> {
        let now = self.now;
        self.pods.values_mut().for_each(|pod| pod.settle(now));
        let Some((key, slot)) = self.queue.get(now) else {
            let next = self.queue.next_at();
            assert!(next.is_none_or(|at| at > now), "it would spin");
            for (key, pod) in self
                .pods
                .iter()
                .filter(|(_, pod)| pod.ready_since.is_some())
            {
                let free = SLOTS[pod.class as usize] - self.taken(pod.class);
                assert_eq!(free, 0, "{key} waits beside a free slot: {pod:?}");
            }
            return None;
        };
        assert!(self.taken(slot) < SLOTS[slot as usize], "{slot:?}");
        let pod = self.pods[&key];
        assert_eq!(slot, pod.class);
        assert!(pod.ready_since.is_some(), "{key} is not ready: {pod:?}");
        for (other, waits) in self.pods.iter().filter(|(_, waits)| waits.class == slot) {
            let longest = waits.ready_since.map(|since| since + LONGEST);
            let starves = longest.is_some_and(|longest| pod.wanted_since > Some(longest));
            assert!(!starves, "{other} waits for too long: {waits:?}, {pod:?}");
        }
        let pod = Pod {
            again_at: None,
            running: Some((slot, None)),
            began_at: Some(now),
            wanted_since: None,
            ready_since: None,
            ..pod
        };
        self.pods.insert(key, pod);
        Some(key)
    }

    fn become_slow(&mut self, key: usize) {
        let free = self.taken(LatencyClass::Slow) < SLOTS[LatencyClass::Slow as usize];
        if let Some((slot @ LatencyClass::Fast, _)) = self.running(key) {
            if free {
                *slot = LatencyClass::Slow;
            }
            assert_eq!(self.queue.become_slow(&key), free);
        }
    }

    fn end(&mut self, key: usize, outcome: impl FnOnce(Seq) -> InspectionOutcome) {
        let Some((_, began)) = self.running(key).copied() else {
            return;
        };
        let (now, began) = (self.now, began.unwrap_or_else(|| self.seq.next()));
        let outcome = outcome(began);
        self.queue.done(&key, outcome, now);
        let Some(mut pod) = self.pods.remove(&key) else {
            return;
        };
        pod.running = None;
        if std::mem::take(&mut pod.forgotten) {
            if pod.cause == Seq::ZERO && !pod.busy {
                return;
            }
        } else {
            let newer = pod.cause > began;
            match outcome {
                InspectionOutcome::Complete { recheck_at, .. } => {
                    pod.class = LatencyClass::Fast;
                    pod.covered = began;
                    pod.again_at = recheck_at.filter(|_| !newer);
                }
                InspectionOutcome::Withheld { until, .. } => {
                    pod.class = LatencyClass::Fast;
                    pod.again_at = Some(if newer { now } else { until });
                }
                InspectionOutcome::Failed { retry_at, hung } => {
                    if hung {
                        pod.class = LatencyClass::Hung;
                    }
                    pod.again_at = Some(retry_at);
                }
                InspectionOutcome::Aborted => {
                    pod.class = pod.class.max(LatencyClass::Slow);
                    pod.again_at = Some(now);
                }
            }
        }
        pod.settle(now);
        self.pods.insert(key, pod);
    }

    /// Ends what runs, and then inspects what waits, as time passes, until nothing is left to do.
    /// The tasks that execute steps do so for ever.
    fn drain(&mut self) {
        for key in 0..KEYS {
            self.end(key, |_| InspectionOutcome::Aborted);
        }
        loop {
            while let Some(key) = self.get() {
                self.act(Act::Complete(key, None));
            }
            let Some(at) = self.queue.next_at() else {
                break;
            };
            self.now = at;
        }
        for (key, pod) in &self.pods {
            assert!(
                pod.cause <= pod.covered,
                "a cause of {key} was lost: {pod:?}"
            );
            assert_eq!(pod.again_at, None, "{key} was not repeated: {pod:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_cause_is_lost_and_no_key_starves(acts in proptest::collection::vec(acts(), 1..200)) {
        let mut scene = Scene::new();
        for act in acts {
            scene.act(act);
        }
        scene.drain();
    }
}
