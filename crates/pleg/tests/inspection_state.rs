//! Explores many interleavings of threads that share an inspection state: no cause is lost, no two
//! inspections of a pod run at a time, and a task that waits for an observation after its step gets
//! it.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

// Not all of it is needed here.
#[allow(dead_code)]
#[path = "../src/inspection_state.rs"]
mod inspection_state;

use std::collections::BTreeSet;

use inspection_state::InspectionState;
use rubelet_base::{Seq, seq::SeqSource};
use shuttle::{
    check_pct, check_random,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

const PODS: usize = 2;
const STEPS: usize = 3;
const INSPECTORS: usize = 2;
const ORDERS: usize = 1500;

/// The state of a pod in PLEG and in the runtime.
#[derive(Default)]
struct Pod {
    inspection: Mutex<InspectionState>,
    /// The number and the result of the last inspection.
    seen: Mutex<(Seq, usize)>,
    changed: Condvar,
    /// The actual state.
    state: AtomicUsize,
    inspections: AtomicUsize,
}

#[derive(Default)]
struct Node {
    order: SeqSource,
    pods: [Pod; PODS],
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    pods: BTreeSet<usize>,
    closed: bool,
}

impl Node {
    /// Records a cause: an event, the end of a step, or a task that waits.
    fn mark(&self, pod: usize) {
        let queued = {
            let mut inspection = self.pods[pod].inspection.lock().unwrap();
            inspection.mark(&self.order)
        };
        if queued {
            self.enqueue(pod);
        }
    }

    fn enqueue(&self, pod: usize) {
        self.queue.lock().unwrap().pods.insert(pod);
        self.wake.notify_one();
    }

    /// Waits for the result of an inspection that began after `after`.
    fn newer_than(&self, pod: usize, after: Seq) -> (Seq, usize) {
        let row = &self.pods[pod];
        let old = *row.seen.lock().unwrap();
        if old.0 <= after {
            self.mark(pod);
        }
        let mut seen = row.seen.lock().unwrap();
        while seen.0 <= after {
            seen = row.changed.wait(seen).unwrap();
        }
        *seen
    }

    /// Inspects queued pods until the queue is closed.
    fn inspect(&self) {
        loop {
            let mut queue = self.queue.lock().unwrap();
            let pod = loop {
                if let Some(pod) = queue.pods.pop_first() {
                    break pod;
                }
                if queue.closed {
                    return;
                }
                queue = self.wake.wait(queue).unwrap();
            };
            drop(queue);
            self.inspect_one(pod);
        }
    }

    fn inspect_one(&self, pod: usize) {
        let row = &self.pods[pod];
        if !row.inspection.lock().unwrap().claim() {
            return;
        }
        let others = row.inspections.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two inspections of one pod");
        thread::yield_now();
        let began = row.inspection.lock().unwrap().begin(&self.order);
        // The runtime answers some time later, with what was true in between.
        let state = row.state.load(Ordering::SeqCst);
        thread::yield_now();
        row.inspections.fetch_sub(1, Ordering::SeqCst);
        let again = {
            let mut inspection = row.inspection.lock().unwrap();
            let again = inspection.end(began);
            // One that is claimed next waits for this lock, and so comes later here, too.
            let mut seen = row.seen.lock().unwrap();
            assert!(seen.0 < began, "observations come in their order");
            *seen = (began, state);
            again
        };
        row.changed.notify_all();
        if again {
            self.enqueue(pod);
        }
    }
}

fn live() {
    let node = Arc::new(Node::default());
    let inspectors: Vec<_> = (0..INSPECTORS)
        .map(|_| {
            let node = Arc::clone(&node);
            thread::spawn(move || node.inspect())
        })
        .collect();
    let mut others = Vec::new();
    for pod in 0..PODS {
        // Its task: each step changes something, and the next one needs to see that.
        let of_task = Arc::clone(&node);
        others.push(thread::spawn(move || {
            let node = of_task;
            for _ in 0..STEPS {
                let done = node.pods[pod].state.fetch_add(1, Ordering::SeqCst) + 1;
                node.mark(pod);
                let end = node.order.next();
                let (seq, state) = node.newer_than(pod, end);
                assert!(seq > end, "it began before the step had ended");
                assert!(state >= done, "it does not show the step");
            }
        }));
        // Others change it, too: the runtime reports it by events, sometimes twice.
        let of_runtime = Arc::clone(&node);
        others.push(thread::spawn(move || {
            let node = of_runtime;
            for step in 0..STEPS {
                node.pods[pod].state.fetch_add(1, Ordering::SeqCst);
                for _ in 0..=step % 2 {
                    node.mark(pod);
                }
            }
        }));
    }
    for other in others {
        other.join().unwrap();
    }
    node.queue.lock().unwrap().closed = true;
    node.wake.notify_all();
    for inspector in inspectors {
        inspector.join().unwrap();
    }
    for pod in &node.pods {
        let (seq, state) = *pod.seen.lock().unwrap();
        assert!(
            !pod.inspection.lock().unwrap().is_dirty(seq),
            "a cause was lost"
        );
        assert_eq!(state, 2 * STEPS, "what was seen last is what is true");
    }
}

#[test]
fn no_cause_is_lost_in_any_order_of_the_threads() {
    check_random(live, ORDERS);
}

#[test]
fn no_cause_is_lost_when_a_thread_is_delayed() {
    check_pct(live, ORDERS, 3);
}
