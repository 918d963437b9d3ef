//! The task that inspects pods and relists.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rubelet_base::{Backoff, ErrorChain, PodUid, Seq};
use rubelet_cri::{CriError, RuntimeService};
use rubelet_node_state::{
    clock::Clock,
    heartbeat::{HEARTBEAT, Heartbeat},
    metrics::{NodeMetrics, PlegNow},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tracing::warn;

use super::{
    handle::PlegHandle,
    inspect::FinishedInspection,
    inspection_slots::InspectionSlots,
    kernel::Kernel,
    listing::{self, Listed},
    missed_changes::MissedChanges,
    slow::Slowness,
    start_events::StreamVerdict,
    stream,
    tracked_pod::{Marks, TrackedPod},
};
use crate::processes::Processes;

/// First wait after a failed relist; doubles up to [`RELIST_RETRY_MAX`].
const RELIST_RETRY: Duration = Duration::from_millis(100);
/// Longest wait after a failed relist.
const RELIST_RETRY_MAX: Duration = Duration::from_secs(5);

/// Settings of PLEG.
#[derive(Debug, Clone, Copy)]
pub struct PlegSettings {
    /// Time from the end of a relist to the start of the next one, while there are no events.
    pub relist_period: Duration,
    /// Whether the runtime's events are used, if it has some.
    pub events: bool,
    /// Idle time before container PIDs are queried, one pod at a time: starts come first.
    pub pid_query_idle: Duration,
}

/// The body of PLEG. Runs until it is dropped.
pub struct PlegTask {
    pub(super) runtime: Arc<dyn RuntimeService>,
    settings: PlegSettings,
    pub(super) handle: PlegHandle,
    pub(super) inspections: JoinSet<FinishedInspection>,
    pub(super) slots: InspectionSlots,
    /// Pods to inspect again, after a failure or because a state may still change; soonest first.
    pub(super) retries: BTreeSet<(Instant, PodUid)>,
    pub(super) missed: MissedChanges,
    pub(super) kernel: Kernel,
    slow: Slowness,
    heartbeat: Heartbeat,
}

impl PlegTask {
    /// Makes the task and the handle that the rest of the agent holds. With `processes`, the kernel
    /// reports exits of containers as well.
    #[must_use]
    pub fn new(
        runtime: Arc<dyn RuntimeService>,
        settings: PlegSettings,
        processes: Option<Arc<dyn Processes>>,
        heartbeat: Heartbeat,
        clock: Clock,
        metrics: Arc<NodeMetrics>,
    ) -> (Self, PlegHandle) {
        let watched = metrics.pleg.watched_processes.clone();
        let handle = PlegHandle::new(settings.relist_period, clock, metrics);
        let task = Self {
            runtime,
            settings,
            handle: handle.clone(),
            inspections: JoinSet::new(),
            slots: InspectionSlots::new(),
            retries: BTreeSet::new(),
            missed: MissedChanges::default(),
            kernel: Kernel::new(processes, settings.pid_query_idle, watched),
            slow: Slowness::default(),
            heartbeat,
        };
        // The metrics are part of what the handle shares: a strong reference would be a cycle.
        let weak = Arc::downgrade(&handle.shared);
        handle.shared.metrics.pleg.set_probe(move || {
            let shared = weak.upgrade();
            shared.map_or_else(PlegNow::default, |shared| PlegHandle { shared }.numbers())
        });
        (task, handle)
    }

    /// Inspects, relists and follows events for ever.
    pub async fn run(mut self) {
        let mut relists: JoinSet<Relisted> = JoinSet::new();
        let mut streams = JoinSet::new();
        if self.settings.events {
            let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
            streams.spawn(stream::read(runtime, handle));
        }
        let mut backoff = Backoff::new(RELIST_RETRY, RELIST_RETRY_MAX);
        let shared = Arc::clone(&self.handle.shared);
        loop {
            self.heartbeat.beat();
            // Timers of tokio do not run while the machine sleeps, so the clocks are compared in each round.
            self.handle.look_for_suspend();
            let (next_relist, echo, relisting) = {
                let flow = shared.flow.lock();
                (
                    flow.cadence.next(),
                    flow.start_events.next(),
                    flow.relisting,
                )
            };
            self.look_for_slowness(relisting);
            let retry = self.retries.first().map(|(at, _)| *at);
            let slow = self.slow.next(relisting);
            let timers = [retry, echo, self.missed.next(), self.kernel.next(), slow];
            let timer = timers.into_iter().flatten().min();
            // Cancel safety: Notify keeps its permit, JoinSets keep finished tasks, timers are
            // computed in each round.
            tokio::select! {
                // An empty JoinSet yields `None`, and the pattern then disables its branch for this
                // round.
                Some(done) = self.inspections.join_next() => match done {
                    Ok(inspected) => self.finish(inspected),
                    // A PLEG without one of its parts would show stale pods for ever; the agent restarts instead.
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Some(done) = relists.join_next() => match done {
                    Ok(relisted) => self.relisted(relisted, &mut backoff),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Some(Err(error)) = streams.join_next() => {
                    std::panic::resume_unwind(error.into_panic());
                }
                Some(end) = self.kernel.ended() => self.handle.process_ended(&end),
                // Nothing to do here: the queue is read below, and the timers at the start of each
                // round.
                () = shared.wake.notified() => {}
                // One at a time: a runtime that hangs must not collect lists.
                () = sleep_until(next_relist), if relists.is_empty() => {
                    relists.spawn(self.relist());
                }
                () = sleep_until(timer.unwrap_or(next_relist)), if timer.is_some() => self.timers(),
                // An idle loop, too, has to show that it is alive, and to notice a suspend.
                () = sleep(HEARTBEAT) => {}
            }
            self.start_inspections();
        }
    }

    fn timers(&mut self) {
        let now = Instant::now();
        while self.retries.first().is_some_and(|(at, _)| *at <= now)
            && let Some((_, uid)) = self.retries.pop_first()
        {
            if let Some(tracked) = self.handle.shared.known(&uid) {
                let urgency = {
                    let mut marks = tracked.marks();
                    marks.reinspect_at = None;
                    marks.request.urgency
                };
                self.handle.shared.enqueue(&uid, urgency);
            }
        }
        let verdict = self.handle.shared.flow.lock().start_events.check(now);
        if let Some(verdict) = verdict {
            self.handle.shared.metrics.pleg.missed_change("echo");
            warn!(
                "A container started without an event; the event stream of the runtime is incomplete"
            );
            self.suspect(verdict);
        }
        self.look_for_missed(now);
        self.kernel.ask(&self.handle, now);
    }

    /// Has the pod inspected at that time, or earlier if that is due already. What an inspection
    /// then sees decides on the next one, so there is one time for each pod.
    pub(super) fn reinspect_at(&mut self, tracked: &TrackedPod, marks: &mut Marks, at: Instant) {
        if let Some(old) = marks.reinspect_at {
            if old <= at {
                return;
            }
            self.retries.remove(&(old, tracked.uid.clone()));
        }
        marks.reinspect_at = Some(at);
        self.retries.insert((at, tracked.uid.clone()));
    }

    /// Events are missing: list, and open the stream again or do without.
    pub(super) fn suspect(&self, verdict: StreamVerdict) {
        let shared = &self.handle.shared;
        {
            let mut flow = shared.flow.lock();
            flow.cadence.suspect(Instant::now());
            flow.distrusted = verdict == StreamVerdict::Distrust;
        }
        // After the lock: the reader of events looks at `distrusted` when it wakes.
        shared.renew.notify_one();
        shared.wake.notify_one();
    }

    fn relist(&self) -> impl Future<Output = Relisted> + 'static {
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        // The number comes before the call: whatever changes from here on is newer than the list.
        let (began, at) = (self.handle.now(), Instant::now());
        let last = {
            let mut flow = handle.shared.flow.lock();
            flow.relisting = Some(at);
            flow.relisted.replace(at)
        };
        let pleg = &handle.shared.metrics.pleg;
        if let Some(last) = last {
            pleg.relist_interval.observe((at - last).as_secs_f64());
        }
        async move {
            let listed = listing::list(&*runtime).await;
            handle.note_answer(listed.as_ref().err());
            Relisted { began, at, listed }
        }
    }

    fn relisted(&mut self, relisted: Relisted, backoff: &mut Backoff) {
        let Relisted { began, at, listed } = relisted;
        let shared = Arc::clone(&self.handle.shared);
        let result = listed.map(|listed| self.reconcile(began, at, &listed));
        let now = Instant::now();
        let mut flow = shared.flow.lock();
        flow.relisting = None;
        let succeeded = result.is_ok();
        match result {
            Ok(()) => {
                backoff.reset();
                // The time at which the list began, as with the kubelet: the list shows nothing
                // newer.
                shared.activity.lock().listed = Some(at);
                flow.cadence.listed(at, now);
            }
            Err(error) => {
                flow.cadence.failed(now, backoff.advance());
                // A runtime that is down is reported by the watch of its status.
                if !error.is_unavailable() {
                    warn!(error = %ErrorChain(&error), "Relist failed");
                }
            }
        }
        let took = now - at;
        self.slow.listed(took, succeeded);
        let took = took.as_secs_f64();
        shared.metrics.pleg.relist_duration.observe(took);
    }

    fn look_for_slowness(&mut self, relisting: Option<Instant>) {
        let crowded = self.slots.many_hang();
        let told = self.slow.look(Instant::now(), relisting, crowded);
        if let Some(told) = told {
            self.handle.shared.slow.send_replace(told);
        }
    }
}

/// A relist that has ended.
struct Relisted {
    began: Seq,
    at: Instant,
    listed: Result<Listed, CriError>,
}

impl PlegHandle {
    /// Takes note of an answer, if only of an error that the runtime sent itself.
    pub(super) fn note_answer(&self, error: Option<&CriError>) {
        if error.is_none_or(|error| !error.is_unavailable() && !error.is_deadline_exceeded()) {
            self.answered();
        }
    }

    fn numbers(&self) -> PlegNow {
        let now = Instant::now();
        let shared = &self.shared;
        let pods: Vec<_> = shared.pods.lock().values().cloned().collect();
        let oldest = pods.iter().filter_map(|tracked| {
            let marks = tracked.marks();
            marks.began_at.filter(|_| marks.inspection.is_claimed())
        });
        let age = |at: Instant| now.saturating_duration_since(at);
        let listed = shared.activity.lock().listed;
        PlegNow {
            last_seen: listed.and_then(|at| shared.clock.now().checked_sub(age(at)).ok()),
            relist: shared.flow.lock().relisting.map(age),
            oldest_inspection: oldest.min().map(age),
            quarantined_pods: shared.quarantine.borrow().len(),
        }
    }
}
