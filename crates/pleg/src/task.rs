//! The task that inspects pods and relists.

use std::{sync::Arc, time::Duration};

use rubelet_base::{Backoff, ErrorChain, Seq};
use rubelet_cri::{CriError, RuntimeService};
use rubelet_node_state::{
    clock::Clock,
    heartbeat::{HEARTBEAT, Heartbeat},
    metrics::{NodeMetrics, PlegSnapshot},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tracing::warn;

use super::{
    handle::PlegHandle,
    inspect::FinishedInspection,
    listing::{self, RuntimeList},
    missed_changes::MissedChanges,
    process_watcher::ProcessWatcher,
    queue::LatencyClass,
    slow::Slowness,
    start_event_watchdog::StreamAction,
    stream,
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
    /// True if the runtime's events are used, where it supports them.
    pub events: bool,
    /// Idle time before container PIDs are queried, one pod at a time, so that container starts
    /// come first.
    pub pid_query_idle: Duration,
}

/// The task of PLEG. Runs until it is dropped.
pub struct PlegTask {
    pub(super) runtime: Arc<dyn RuntimeService>,
    settings: PlegSettings,
    pub(super) handle: PlegHandle,
    pub(super) inspections: JoinSet<FinishedInspection>,
    pub(super) missed: MissedChanges,
    pub(super) process_watcher: ProcessWatcher,
    slow: Slowness,
    heartbeat: Heartbeat,
}

impl PlegTask {
    /// Creates the task and its handle. With `processes`, the kernel reports exits of containers as
    /// well.
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
            missed: MissedChanges::default(),
            process_watcher: ProcessWatcher::new(processes, settings.pid_query_idle, watched),
            slow: Slowness::default(),
            heartbeat,
        };
        // The metrics are part of what the handle shares: a strong reference would be a cycle.
        let weak = Arc::downgrade(&handle.shared);
        handle.shared.metrics.pleg.set_probe(move || {
            let shared = weak.upgrade();
            shared.map_or_else(PlegSnapshot::default, |shared| {
                PlegHandle { shared }.numbers()
            })
        });
        (task, handle)
    }

    /// Inspects, relists and reads events for ever.
    pub async fn run(mut self) {
        let mut relists: JoinSet<FinishedRelist> = JoinSet::new();
        let mut streams = JoinSet::new();
        if self.settings.events {
            let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
            streams.spawn(stream::read(runtime, handle));
        }
        let mut backoff = Backoff::new(RELIST_RETRY, RELIST_RETRY_MAX);
        let shared = Arc::clone(&self.handle.shared);
        loop {
            self.heartbeat.beat();
            // Timers of tokio do not run while the machine is suspended, so the clocks are compared
            // in each round.
            self.handle.look_for_suspend();
            let (next_relist, start_event, relisting) = {
                let event_stream = shared.event_stream.lock();
                (
                    event_stream.schedule.next(),
                    event_stream.start_watchdog.next(),
                    event_stream.relisting,
                )
            };
            self.check_slowness(relisting);
            let checks = [
                start_event,
                self.missed.next(),
                self.process_watcher.next(),
                self.slow.next(relisting),
            ];
            let check = checks.into_iter().flatten().min();
            // Cancel safety: Notify keeps its permit, JoinSets keep finished tasks, timers are
            // computed in each round.
            tokio::select! {
                // An empty JoinSet yields `None`, and the pattern then disables its branch for this
                // round.
                Some(done) = self.inspections.join_next() => match done {
                    Ok(inspected) => self.finish(inspected),
                    // Without one of its parts PLEG would publish stale observations for ever; the
                    // agent restarts instead.
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Some(done) = relists.join_next() => match done {
                    Ok(relisted) => self.relisted(relisted, &mut backoff),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                Some(Err(error)) = streams.join_next() => {
                    std::panic::resume_unwind(error.into_panic());
                }
                Some(end) = self.process_watcher.ended() => self.handle.process_ended(&end),
                // Nothing to do here: the queue is read below, and the timers at the start of each
                // round.
                () = shared.woken() => {}
                // One at a time: lists must not accumulate in a runtime that hangs.
                () = sleep_until(next_relist), if relists.is_empty() => {
                    relists.spawn(self.relist());
                }
                () = sleep_until(check.unwrap_or(next_relist)), if check.is_some() => self.run_checks(),
                // An idle loop also has to beat its heart and to notice a suspend.
                () = sleep(HEARTBEAT) => {}
            }
            // Here and not in a branch of its own: whatever has happened may have added a pod or freed
            // a slot, and the check for slowness then sees what still waits.
            self.start_inspections();
        }
    }

    /// Looks for events that are missing, and queries the next PIDs.
    fn run_checks(&mut self) {
        let now = Instant::now();
        let action = self
            .handle
            .shared
            .event_stream
            .lock()
            .start_watchdog
            .check(now);
        if let Some(action) = action {
            self.handle.shared.metrics.pleg.missed_change("echo");
            warn!("No event arrived for a started container; the event stream is incomplete");
            self.suspect(action);
        }
        self.look_for_missed(now);
        self.process_watcher.query_next_pod(&self.handle, now);
    }

    /// Reacts to missing events: relists, and opens the stream again or falls back to polling.
    pub(super) fn suspect(&self, action: StreamAction) {
        let shared = &self.handle.shared;
        {
            let mut event_stream = shared.event_stream.lock();
            event_stream.schedule.suspect(Instant::now());
            event_stream.incomplete = action == StreamAction::FallBackToPolling;
        }
        // After the lock: the reader of events looks at `incomplete` when it wakes.
        shared.reconnect.notify_one();
        shared.wake.notify_one();
    }

    fn relist(&self) -> impl Future<Output = FinishedRelist> + 'static {
        let (runtime, handle) = (Arc::clone(&self.runtime), self.handle.clone());
        // The number is taken before the call: any change from here on is newer than the list.
        let (began, at) = (self.handle.now(), Instant::now());
        let last = {
            let mut event_stream = handle.shared.event_stream.lock();
            event_stream.relisting = Some(at);
            event_stream.relisted.replace(at)
        };
        let pleg = &handle.shared.metrics.pleg;
        if let Some(last) = last {
            pleg.relist_interval.observe((at - last).as_secs_f64());
        }
        async move {
            let listed = listing::list(&*runtime).await;
            handle.note_answer(listed.as_ref().err());
            FinishedRelist { began, at, listed }
        }
    }

    fn relisted(&mut self, relisted: FinishedRelist, backoff: &mut Backoff) {
        let FinishedRelist { began, at, listed } = relisted;
        let shared = Arc::clone(&self.handle.shared);
        let result = listed.map(|listed| self.reconcile(began, at, &listed));
        let now = Instant::now();
        let mut event_stream = shared.event_stream.lock();
        event_stream.relisting = None;
        let succeeded = result.is_ok();
        match result {
            Ok(()) => {
                backoff.reset();
                // The time at which the list began, as in the kubelet: the list shows nothing
                // newer.
                shared.activity.lock().listed = Some(at);
                event_stream.schedule.listed(at, now);
            }
            Err(error) => {
                event_stream.schedule.failed(now, backoff.advance());
                // The watch of the runtime's status reports a runtime that is down.
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

    fn check_slowness(&mut self, relisting: Option<Instant>) {
        let crowded = self
            .handle
            .shared
            .queue
            .lock()
            .is_crowded(LatencyClass::Hung);
        let report = self.slow.check(Instant::now(), relisting, crowded);
        if let Some(report) = report {
            self.handle.shared.slow.send_replace(report);
        }
    }
}

/// The result of a relist.
struct FinishedRelist {
    began: Seq,
    at: Instant,
    listed: Result<RuntimeList, CriError>,
}

impl PlegHandle {
    /// Notes a response of the runtime, including errors that it returned.
    pub(super) fn note_answer(&self, error: Option<&CriError>) {
        if error.is_none_or(|error| !error.is_unavailable() && !error.is_deadline_exceeded()) {
            self.answered();
        }
    }

    fn numbers(&self) -> PlegSnapshot {
        let now = Instant::now();
        let shared = &self.shared;
        let age = |at: Instant| now.saturating_duration_since(at);
        let listed = shared.activity.lock().listed;
        PlegSnapshot {
            last_seen: listed.and_then(|at| shared.clock.now().checked_sub(age(at)).ok()),
            relist: shared.event_stream.lock().relisting.map(age),
            oldest_inspection: shared.queue.lock().oldest().map(age),
            quarantined_pods: shared.quarantine.borrow().len(),
        }
    }
}
