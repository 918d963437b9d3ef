//! Tests of the queue: what comes first, and when.

use std::time::Duration;

use rubelet_base::seq::SeqSource;

use super::*;

/// A queue at a point in time, whose inspections are ended by hand.
struct Scene {
    queue: WorkQueue<&'static str>,
    seq: SeqSource,
    start: Instant,
    now: Instant,
}

impl Scene {
    /// With that number of slots for fast, slow and hung pods.
    fn new(slots: [usize; CLASSES]) -> Self {
        let start = Instant::now();
        Self {
            queue: WorkQueue::new(slots),
            seq: SeqSource::default(),
            start,
            now: start,
        }
    }

    fn at(&self, millis: u64) -> Instant {
        self.start + Duration::from_millis(millis)
    }

    /// Goes to that time.
    fn go(&mut self, millis: u64) {
        self.now = self.at(millis);
    }

    fn add(&mut self, key: &'static str, priority: Priority) -> bool {
        self.queue.add(&key, priority, self.seq.next(), self.now)
    }

    fn get(&mut self) -> Option<&'static str> {
        self.queue.get(self.now).map(|(key, _)| key)
    }

    /// All that can start now.
    fn get_all(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| self.get()).collect()
    }

    fn done(&mut self, key: &'static str, outcome: InspectionOutcome) {
        self.queue.done(&key, outcome, self.now);
    }

    /// Ends an inspection which shows the effect of all causes.
    fn complete(&mut self, key: &'static str) {
        let began = self.seq.next();
        self.done(key, complete(began));
    }

    /// Starts, and ends, one after the other.
    fn drain(&mut self) -> Vec<&'static str> {
        std::iter::from_fn(|| {
            let key = self.get()?;
            self.complete(key);
            Some(key)
        })
        .collect()
    }

    /// The milliseconds at which the first key becomes ready.
    fn next(&self) -> Option<u128> {
        let at = self.queue.next_at()?;
        Some((at - self.start).as_millis())
    }
}

fn complete(began: Seq) -> InspectionOutcome {
    InspectionOutcome::Complete {
        began,
        recheck_at: None,
    }
}

#[test]
fn the_highest_priority_comes_first() {
    let mut scene = Scene::new([1, 1, 1]);
    for (key, priority) in [
        ("list", Priority::Reconcile),
        ("started", Priority::Change),
        ("ended", Priority::Stopped),
        ("task", Priority::Waiting),
    ] {
        assert!(scene.add(key, priority));
    }
    assert_eq!(scene.drain(), ["task", "ended", "started", "list"]);
}

#[test]
fn equal_priorities_come_in_order_of_arrival() {
    let mut scene = Scene::new([1, 1, 1]);
    for (millis, key) in (0..).zip(["c", "a", "b"]) {
        scene.go(millis);
        scene.add(key, Priority::Stopped);
    }
    assert_eq!(scene.drain(), ["c", "a", "b"]);
}

#[test]
fn a_key_waits_once_with_its_highest_priority() {
    let mut scene = Scene::new([1, 1, 1]);
    scene.add("a", Priority::Stopped);
    assert!(scene.add("b", Priority::Reconcile));
    for priority in [Priority::Waiting, Priority::Change] {
        assert!(!scene.add("b", priority));
    }
    assert_eq!(scene.drain(), ["b", "a"]);
}

#[test]
fn no_key_is_delayed_by_others_for_ever() {
    let mut scene = Scene::new([1, 1, 1]);
    scene.add("list", Priority::Reconcile);
    for second in 0..60 {
        scene.go(second * 1000 + 1);
        scene.add("busy", Priority::Waiting);
        let key = scene.get().expect("two wait");
        if key == "list" {
            assert_eq!(second, 30);
            return;
        }
        scene.complete(key);
    }
    panic!("it was never inspected");
}

#[test]
fn no_more_slots_are_given_away_than_there_are() {
    let mut scene = Scene::new([2, 1, 1]);
    for key in ["a", "b", "c"] {
        scene.add(key, Priority::Change);
    }
    assert_eq!(scene.get_all(), ["a", "b"]);
    scene.complete("b");
    assert_eq!(scene.get_all(), ["c"]);
}

#[test]
fn keys_of_one_class_do_not_take_the_slots_of_another() {
    let mut scene = Scene::new([2, 1, 1]);
    let failed = |hung| InspectionOutcome::Failed {
        retry_at: scene.now,
        hung,
    };
    let outcomes = [
        ("hung-1", failed(true)),
        ("hung-2", failed(true)),
        ("slow-1", InspectionOutcome::Aborted),
        ("slow-2", InspectionOutcome::Aborted),
        ("fast-1", failed(false)),
    ];
    for (key, outcome) in outcomes {
        scene.add(key, Priority::Change);
        assert_eq!(scene.queue.get(scene.now), Some((key, LatencyClass::Fast)));
        scene.done(key, outcome);
    }
    scene.add("fast-2", Priority::Change);
    scene.add("fast-3", Priority::Change);
    assert_eq!(scene.get_all(), ["fast-1", "fast-2", "slow-1", "hung-1"]);
    assert!(scene.queue.is_crowded(LatencyClass::Hung));
    // One that succeeds is fast again.
    scene.complete("hung-1");
    assert_eq!(scene.get_all(), ["hung-2"]);
    assert!(!scene.queue.is_crowded(LatencyClass::Hung));
    scene.add("hung-1", Priority::Waiting);
    scene.complete("fast-1");
    assert_eq!(
        scene.queue.get(scene.now),
        Some(("hung-1", LatencyClass::Fast))
    );
}

#[test]
fn an_inspection_that_becomes_slow_frees_its_fast_slot_if_there_is_one_for_slow_ones() {
    let mut scene = Scene::new([1, 1, 1]);
    for key in ["a", "b", "c"] {
        scene.add(key, Priority::Change);
    }
    assert_eq!(scene.get_all(), ["a"]);
    assert!(scene.queue.become_slow(&"a"));
    assert_eq!(scene.get_all(), ["b"]);
    assert!(!scene.queue.become_slow(&"b"));
    scene.done("b", InspectionOutcome::Aborted);
    assert_eq!(scene.get_all(), ["c"]);
    // It is repeated in the slot of the first one, with its priority.
    scene.complete("a");
    assert_eq!(scene.queue.get(scene.now), Some(("b", LatencyClass::Slow)));
}

#[test]
fn only_a_cause_after_the_number_of_an_inspection_makes_its_key_ready_again() {
    let mut scene = Scene::new([1, 1, 1]);
    scene.add("a", Priority::Change);
    assert_eq!(scene.get(), Some("a"));
    assert!(!scene.add("a", Priority::Change), "the end decides");
    let began = scene.seq.next();
    scene.done("a", complete(began));
    assert_eq!(scene.get(), None, "its result shows the cause");

    scene.add("a", Priority::Change);
    assert_eq!(scene.get(), Some("a"));
    let began = scene.seq.next();
    for _ in 0..100 {
        scene.add("a", Priority::Stopped);
    }
    scene.done("a", complete(began));
    assert_eq!(scene.get(), Some("a"), "its result may not show them");
    scene.complete("a");
    assert_eq!(scene.get(), None, "one more shows all");
}

#[test]
fn a_failed_inspection_is_repeated_at_its_time_or_with_the_next_cause() {
    let mut scene = Scene::new([1, 1, 1]);
    scene.add("a", Priority::Waiting);
    assert_eq!(scene.get(), Some("a"));
    // A cause that came meanwhile does not shorten the back-off.
    scene.add("a", Priority::Change);
    let retry_at = scene.at(100);
    let failed = InspectionOutcome::Failed {
        retry_at,
        hung: false,
    };
    scene.done("a", failed);
    assert_eq!((scene.get(), scene.next()), (None, Some(100)));
    scene.go(100);
    scene.add("b", Priority::Stopped);
    assert_eq!(scene.get(), Some("a"), "its task still waits");
    let retry_at = scene.at(300);
    scene.done(
        "a",
        InspectionOutcome::Failed {
            retry_at,
            hung: false,
        },
    );
    assert_eq!(scene.drain(), ["b"]);
    assert!(scene.add("a", Priority::Reconcile));
    assert_eq!((scene.next(), scene.drain()), (None, vec!["a"]));
}

#[test]
fn a_result_that_is_not_believed_is_repeated_at_its_time_or_for_a_newer_cause() {
    for (newer, next) in [(false, Some(1000)), (true, None)] {
        let mut scene = Scene::new([1, 1, 1]);
        scene.add("a", Priority::Change);
        assert_eq!(scene.get(), Some("a"));
        let (began, until) = (scene.seq.next(), scene.at(1000));
        if newer {
            scene.add("a", Priority::Stopped);
        }
        scene.done("a", InspectionOutcome::Withheld { began, until });
        assert_eq!((scene.get().is_some(), scene.next()), (newer, next));
    }
}

#[test]
fn a_state_is_read_again_at_its_time_unless_a_cause_comes_first() {
    let mut scene = Scene::new([1, 1, 1]);
    for (millis, cause, next) in [(1000, None, Some(1000)), (3000, Some(2000), None)] {
        scene.add("a", Priority::Change);
        assert_eq!(scene.get(), Some("a"));
        let (began, recheck_at) = (scene.seq.next(), Some(scene.at(millis)));
        scene.done("a", InspectionOutcome::Complete { began, recheck_at });
        if let Some(at) = cause {
            scene.go(at);
            assert!(scene.add("a", Priority::Change));
        }
        assert_eq!(scene.next(), next);
        scene.go(next.map_or(2000, |_| millis));
        // The next result decides when the one after that is due.
        assert_eq!((scene.drain(), scene.next()), (vec!["a"], None));
    }
}

#[test]
fn while_a_task_executes_steps_its_pod_is_inspected_once_a_second_and_at_their_end() {
    let mut scene = Scene::new([1, 1, 1]);
    // Never inspected: there is nothing to wait for.
    scene.queue.hold(&"a");
    scene.add("a", Priority::Change);
    assert_eq!(scene.drain(), ["a"]);
    for step in [100, 400, 700] {
        scene.go(step);
        scene.add("a", Priority::Change);
        assert_eq!((scene.get(), scene.next()), (None, Some(1000)));
    }
    // Others are not delayed.
    scene.add("b", Priority::Reconcile);
    assert_eq!(scene.drain(), ["b"]);
    scene.go(1000);
    assert_eq!(scene.drain(), ["a"]);
    scene.go(1100);
    scene.add("a", Priority::Change);
    assert_eq!((scene.get(), scene.next()), (None, Some(2000)));
    scene.go(1200);
    assert!(scene.queue.release(&"a", scene.now));
    assert_eq!((scene.drain(), scene.next()), (vec!["a"], None));
    // Without a cause there is nothing to inspect.
    scene.queue.hold(&"a");
    assert!(!scene.queue.release(&"a", scene.now));
    assert_eq!(scene.get(), None);
}

#[test]
fn a_forgotten_key_keeps_its_slot_until_its_inspection_ends() {
    let mut scene = Scene::new([1, 1, 1]);
    scene.add("idle", Priority::Change);
    scene.drain();
    scene.add("delayed", Priority::Change);
    scene.get();
    let (began, recheck_at) = (scene.seq.next(), Some(scene.at(50)));
    scene.done("delayed", InspectionOutcome::Complete { began, recheck_at });
    scene.add("running", Priority::Change);
    assert_eq!(scene.get(), Some("running"));
    scene.add("ready", Priority::Change);
    assert_eq!((scene.queue.len(), scene.next()), (4, Some(50)));
    for key in ["running", "ready", "delayed", "idle"] {
        scene.queue.forget(&key);
    }
    assert_eq!((scene.queue.len(), scene.next()), (1, None));
    scene.add("next", Priority::Change);
    assert_eq!(scene.get(), None, "the slot is taken");
    let retry_at = scene.at(100);
    scene.done(
        "running",
        InspectionOutcome::Failed {
            retry_at,
            hung: true,
        },
    );
    assert_eq!(
        (scene.queue.len(), scene.next()),
        (1, None),
        "only the last one is left"
    );
    assert_eq!(scene.get_all(), ["next"]);
}

#[test]
fn a_new_pod_with_the_uid_of_a_forgotten_one_waits_for_the_end_of_its_inspection() {
    let mut scene = Scene::new([2, 1, 1]);
    scene.add("a", Priority::Change);
    assert_eq!(scene.get(), Some("a"));
    scene.add("a", Priority::Change);
    scene.queue.forget(&"a");
    scene.add("a", Priority::Waiting);
    assert_eq!(scene.get(), None);
    // The old result says nothing about the new pod, whatever its number is.
    scene.complete("a");
    assert_eq!(scene.get(), Some("a"));
    scene.queue.forget(&"a");
    scene.done("a", InspectionOutcome::Aborted);
    assert_eq!((scene.queue.len(), scene.get()), (0, None));
}

#[test]
fn the_oldest_inspection_in_progress_is_known() {
    let mut scene = Scene::new([2, 1, 1]);
    assert_eq!(scene.queue.oldest(), None);
    for (millis, key) in [(0, "a"), (10, "b")] {
        scene.go(millis);
        scene.add(key, Priority::Change);
        assert_eq!(scene.get(), Some(key));
    }
    assert!(scene.queue.is_active(&"a"));
    scene.complete("a");
    assert!(!scene.queue.is_active(&"a"));
    assert_eq!(scene.queue.oldest(), Some(scene.at(10)));
}
