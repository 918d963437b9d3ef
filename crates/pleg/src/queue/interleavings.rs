//! Explores many interleavings of threads that share the queue and the records of pods, as the
//! task of PLEG, its inspections, the tasks of pods and the reader of events do: no cause and no
//! identifier is lost, no two inspections of a pod run at a time, observations are published in
//! their order, and a task that waits for an observation after its step gets it.

use std::{collections::BTreeSet, time::Duration};

use rubelet_base::seq::SeqSource;
use shuttle::{
    check_pct, check_random,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::*;

const PODS: usize = 2;
const STEPS: usize = 2;
const ORDERS: usize = 1500;

/// The record of a pod.
#[derive(Default)]
struct Pod {
    pending: Mutex<Pending>,
    seen: Mutex<SeenState>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    changed: Seq,
    /// Identifiers that the next inspection has to read, and all that there were.
    learned: BTreeSet<usize>,
    all: BTreeSet<usize>,
}

#[derive(Clone, Default)]
struct SeenState {
    seq: Seq,
    state: usize,
    /// All identifiers that inspections have read.
    read: BTreeSet<usize>,
}

/// PLEG and the runtime. Pods are numbers: each is followed by a second one with its UID.
struct Node {
    order: SeqSource,
    pods: Mutex<[Option<Arc<Pod>>; PODS]>,
    queue: Mutex<Queue>,
    wake: Condvar,
    inspections: [AtomicUsize; PODS],
    ended: AtomicUsize,
    /// The actual states.
    states: [AtomicUsize; PODS],
}

struct Queue {
    works: WorkQueue<usize>,
    ended: Vec<Inspection>,
    now: Instant,
    woken: bool,
    closed: bool,
}

/// An inspection that has ended, and what it has read.
struct Inspection {
    uid: usize,
    pod: Arc<Pod>,
    began: Seq,
    plan: BTreeSet<usize>,
    end: End,
}

enum End {
    Result(usize),
    Failed { hung: bool },
    Aborted,
}

impl Node {
    fn new() -> Self {
        let queue = Queue {
            works: WorkQueue::new([2, 1, 1]),
            ended: Vec::new(),
            now: Instant::now(),
            woken: false,
            closed: false,
        };
        Self {
            order: SeqSource::default(),
            pods: Mutex::default(),
            queue: Mutex::new(queue),
            wake: Condvar::new(),
            inspections: Default::default(),
            ended: AtomicUsize::new(0),
            states: Default::default(),
        }
    }

    /// Changes the queue, and wakes the task of PLEG if that returns true.
    fn change(&self, change: impl FnOnce(&mut Queue) -> bool) -> bool {
        let mut queue = self.queue.lock().unwrap();
        let changed = change(&mut queue);
        queue.woken |= changed;
        drop(queue);
        if changed {
            self.wake.notify_one();
        }
        changed
    }

    fn known(&self, uid: usize) -> Option<Arc<Pod>> {
        self.pods.lock().unwrap()[uid].clone()
    }

    /// Records a cause and an identifier: an event, the end of a step, or a task that waits.
    fn mark(&self, uid: usize, pod: &Pod) {
        let number = {
            let mut pending = pod.pending.lock().unwrap();
            let id = pending.all.len();
            pending.all.insert(id);
            pending.learned.insert(id);
            pending.changed = self.order.next();
            pending.changed
        };
        self.change(|queue| queue.works.add(&uid, Priority::Change, number, queue.now));
    }

    /// Waits for the result of an inspection that began after `after`.
    fn newer_than(&self, uid: usize, pod: &Pod, after: Seq) -> SeenState {
        let old = pod.seen.lock().unwrap().seq;
        if old <= after {
            self.mark(uid, pod);
        }
        let mut seen = pod.seen.lock().unwrap();
        while seen.seq <= after {
            seen = pod.changed.wait(seen).unwrap();
        }
        seen.clone()
    }

    /// The task of a pod: each step changes something, and the next one needs to see that.
    fn live(&self, uid: usize) -> Arc<Pod> {
        let pod = Arc::new(Pod::default());
        self.pods.lock().unwrap()[uid] = Some(Arc::clone(&pod));
        for _ in 0..STEPS {
            self.change(|queue| {
                queue.works.hold(&uid);
                false
            });
            let done = self.states[uid].fetch_add(1, Ordering::SeqCst) + 1;
            self.mark(uid, &pod);
            let end = self.order.next();
            self.change(|queue| queue.works.release(&uid, queue.now));
            let seen = self.newer_than(uid, &pod, end);
            assert!(seen.seq > end, "it began before the step had ended");
            assert!(seen.state >= done, "it does not show the step");
        }
        pod
    }

    fn forget(&self, uid: usize) {
        let mut pods = self.pods.lock().unwrap();
        pods[uid] = None;
        self.change(|queue| {
            queue.works.forget(&uid);
            false
        });
    }

    /// The reader of events, some of which come twice.
    fn read_events(&self, uid: usize) {
        for step in 0..STEPS {
            self.states[uid].fetch_add(1, Ordering::SeqCst);
            for _ in 0..=step % 2 {
                if let Some(pod) = self.known(uid) {
                    self.mark(uid, &pod);
                }
            }
        }
    }

    fn next_ready(&self) -> Option<(usize, LatencyClass, Arc<Pod>)> {
        let (pods, mut queue) = (self.pods.lock().unwrap(), self.queue.lock().unwrap());
        let now = queue.now;
        loop {
            let (uid, slot) = queue.works.get(now)?;
            if let Some(pod) = &pods[uid] {
                return Some((uid, slot, Arc::clone(pod)));
            }
            queue.works.forget(&uid);
            queue.works.done(&uid, InspectionOutcome::Aborted, now);
        }
    }

    /// Reads a pod from the runtime, which may fail or take too long.
    fn inspect(&self, uid: usize, slot: LatencyClass, pod: Arc<Pod>) {
        let others = self.inspections[uid].fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two inspections of one pod");
        let (began, plan) = {
            let pending = pod.pending.lock().unwrap();
            (self.order.next(), pending.learned.clone())
        };
        // The runtime answers some time later, with what was true in between.
        let state = self.states[uid].load(Ordering::SeqCst);
        thread::yield_now();
        let number = self.ended.fetch_add(1, Ordering::SeqCst);
        let slow = number % 3 == 1 && slot == LatencyClass::Fast;
        let end = if slow && !self.change(|queue| queue.works.become_slow(&uid)) {
            End::Aborted
        } else if number % 4 == 2 {
            let hung = number % 8 == 2;
            End::Failed { hung }
        } else {
            End::Result(state)
        };
        self.inspections[uid].fetch_sub(1, Ordering::SeqCst);
        self.change(|queue| {
            queue.ended.push(Inspection {
                uid,
                pod,
                began,
                plan,
                end,
            });
            true
        });
    }

    fn finish(&self, ended: Inspection) {
        let Inspection { uid, began, .. } = ended;
        let state = match ended.end {
            End::Result(state) => Some(state),
            _ => None,
        };
        if let Some(state) = state {
            publish(&ended.pod, began, state, ended.plan);
        }
        self.change(|queue| {
            let outcome = match ended.end {
                End::Result(_) => InspectionOutcome::Complete {
                    began,
                    recheck_at: None,
                },
                End::Failed { hung } => InspectionOutcome::Failed {
                    retry_at: queue.now + Duration::from_millis(100),
                    hung,
                },
                End::Aborted => InspectionOutcome::Aborted,
            };
            queue.works.done(&uid, outcome, queue.now);
            false
        });
    }

    /// The task of PLEG, until the queue is closed and nothing waits in it.
    fn run(self: Arc<Self>) {
        let mut inspections = Vec::new();
        loop {
            let ended = std::mem::take(&mut self.queue.lock().unwrap().ended);
            for ended in ended {
                self.finish(ended);
            }
            while let Some((uid, slot, pod)) = self.next_ready() {
                let node = Arc::clone(&self);
                inspections.push(thread::spawn(move || node.inspect(uid, slot, pod)));
            }
            let mut queue = self.queue.lock().unwrap();
            if let Some(at) = queue.works.next_at().filter(|_| !queue.woken) {
                // Time passes while nothing else can be done, and others may come first.
                drop(queue);
                thread::yield_now();
                queue = self.queue.lock().unwrap();
                queue.now = queue.now.max(at);
                continue;
            }
            if queue.closed && !queue.woken && queue.works.oldest().is_none() {
                break;
            }
            while !queue.woken {
                queue = self.wake.wait(queue).unwrap();
            }
            queue.woken = false;
        }
        for inspection in inspections {
            inspection.join().unwrap();
        }
    }
}

fn publish(pod: &Pod, began: Seq, state: usize, plan: BTreeSet<usize>) {
    {
        let mut pending = pod.pending.lock().unwrap();
        if pending.changed <= began {
            pending.learned.clear();
        }
    }
    let mut seen = pod.seen.lock().unwrap();
    assert!(seen.seq < began, "observations come in their order");
    (seen.seq, seen.state) = (began, state);
    seen.read.extend(plan);
    pod.changed.notify_all();
}

fn live() {
    let node = Arc::new(Node::new());
    let of_pleg = Arc::clone(&node);
    let pleg = thread::spawn(move || of_pleg.run());
    let (mut tasks, mut readers) = (Vec::new(), Vec::new());
    for uid in 0..PODS {
        let (of_task, of_reader) = (Arc::clone(&node), Arc::clone(&node));
        tasks.push(thread::spawn(move || {
            of_task.live(uid);
            of_task.forget(uid);
            of_task.live(uid)
        }));
        readers.push(thread::spawn(move || of_reader.read_events(uid)));
    }
    for reader in readers {
        reader.join().unwrap();
    }
    let pods: Vec<_> = tasks.into_iter().map(|task| task.join().unwrap()).collect();
    node.change(|queue| {
        queue.closed = true;
        true
    });
    pleg.join().unwrap();
    for (uid, pod) in pods.iter().enumerate() {
        let (pending, seen) = (pod.pending.lock().unwrap(), pod.seen.lock().unwrap());
        assert!(pending.changed < seen.seq, "a cause was lost");
        let state = node.states[uid].load(Ordering::SeqCst);
        assert_eq!(seen.state, state, "what was seen last is what is true");
        assert!(pending.all.is_subset(&seen.read), "an identifier was lost");
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
