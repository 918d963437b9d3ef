//! The task that runs all probes of the node.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::{PodUid, event_reason};
use rubelet_cri::RuntimeService;
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder},
};
use rubelet_pod_plan::probe::AttemptOutcome;
use slab::Slab;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tracing::{debug, warn};

use super::{
    ProberHandle,
    attempt::{AttemptRunner, FinishedAttempt},
    net::NetProbe,
    pod_probes::PodProbes,
    probe::Probe,
    probe_context::ProbeContext,
    probe_state::ProbeState,
    timing,
    wheel::Wheel,
};
use crate::report::ProbeOutcome;

/// Attempts that are due within one tick begin together.
const TICK: Duration = Duration::from_millis(10);
/// Size of the output kept for `rubelet why`.
const OUTPUT_KEPT: usize = 1024;

/// The body of the task.
pub struct ProberTask {
    pub(super) state: Arc<ProbeState>,
    pub(super) clock: Clock,
    /// When the prober started: containers that were started before were found running.
    pub(super) began: Timestamp,
    pub(super) wheel: Wheel,
    pub(super) probes: Slab<Probe>,
    pub(super) pods: HashMap<PodUid, PodProbes>,
    recorder: Recorder,
    runner: Arc<AttemptRunner>,
    pub(super) attempts: JoinSet<(u32, FinishedAttempt)>,
    /// The time of tick 0.
    origin: Instant,
    due: Vec<u32>,
}

impl ProberTask {
    /// Creates the task and its handle.
    #[must_use]
    pub fn new(
        runtime: Arc<dyn RuntimeService>,
        net: Arc<dyn NetProbe>,
        recorder: Recorder,
        clock: Clock,
    ) -> (Self, ProberHandle) {
        let handle = ProberHandle::default();
        let began = clock.now();
        handle.state.begin(began);
        let task = Self {
            state: Arc::clone(&handle.state),
            began,
            clock,
            wheel: Wheel::new(),
            probes: Slab::new(),
            pods: HashMap::new(),
            recorder,
            runner: Arc::new(AttemptRunner::new(runtime, net)),
            attempts: JoinSet::new(),
            origin: Instant::now(),
            due: Vec::new(),
        };
        (task, handle)
    }

    /// Runs probes until it is dropped. Without probes it never wakes.
    pub async fn run(mut self) {
        self.work().await;
    }

    pub(super) async fn work(&mut self) {
        let state = Arc::clone(&self.state);
        let mut timer = pin!(sleep_until(self.origin));
        loop {
            let wake = self.wheel.next().map(|tick| self.instant(tick));
            if let Some(at) = wake.filter(|at| *at != timer.deadline()) {
                timer.as_mut().reset(at);
            }
            // Cancel safety: a change stays noted, a joined attempt is only taken when it is
            // returned, and the timer is set again.
            tokio::select! {
                () = state.changed() => self.take_changes(),
                Some(ended) = self.attempts.join_next_with_id(), if !self.attempts.is_empty() => {
                    self.finish(ended);
                }
                () = &mut timer, if wake.is_some() => self.begin_due(),
            }
        }
    }

    /// Sets the time of a probe's next attempt.
    pub(super) fn schedule(&mut self, key: u32, due: Instant) {
        let since = due.saturating_duration_since(self.origin).as_nanos();
        // Rounded up: no attempt begins before it is due.
        let tick = u64::try_from(since.div_ceil(TICK.as_nanos())).unwrap_or(u64::MAX);
        self.wheel.set(key, tick);
        let next = self.wall(due);
        let probe = &mut self.probes[key as usize];
        probe.due = due;
        let context = &probe.context;
        self.state.change(&context.pod.uid, |row| {
            if let Some(report) = row.report(&context.id, context.kind) {
                report.next = Some(next);
            }
        });
    }

    fn instant(&self, tick: u64) -> Instant {
        let millis = tick.saturating_mul(TICK.as_millis() as u64);
        self.origin + Duration::from_millis(millis)
    }

    fn wall(&self, at: Instant) -> Timestamp {
        rubelet_pod_plan::after(
            self.clock.now(),
            at.saturating_duration_since(Instant::now()),
        )
    }

    fn begin_due(&mut self) {
        let since = self.origin.elapsed().as_millis() / TICK.as_millis();
        let tick = u64::try_from(since).unwrap_or(u64::MAX);
        let mut due = std::mem::take(&mut self.due);
        self.wheel.advance(tick, &mut due);
        for key in due.drain(..) {
            self.begin(key);
        }
        self.due = due;
    }

    fn begin(&mut self, key: u32) {
        let probe = &mut self.probes[key as usize];
        probe.waits_for_address = probe.context.lacks_address();
        if probe.waits_for_address {
            let context = &probe.context;
            self.state.change(&context.pod.uid, |row| {
                if let Some(report) = row.report(&context.id, context.kind) {
                    report.next = None;
                }
            });
            return;
        }
        let (runner, context, due) = (
            Arc::clone(&self.runner),
            Arc::clone(&probe.context),
            probe.due,
        );
        let attempt = async move { (key, runner.attempt(&context, due).await) };
        probe.attempt = Some(self.attempts.spawn(attempt));
    }

    fn finish(&mut self, ended: Result<(Id, (u32, FinishedAttempt)), JoinError>) {
        match ended {
            Ok((id, (key, done))) => {
                let probe = self.probes.get_mut(key as usize);
                // The key of a dropped probe may have been given to another one meanwhile.
                let current = probe.filter(|probe| probe.is_tried_by(id));
                if let Some(probe) = current {
                    probe.attempt = None;
                    self.note(key, &done);
                }
            }
            Err(error) if error.is_panic() => {
                let mut probes = self.probes.iter();
                if let Some((key, probe)) = probes.find(|(_, probe)| probe.is_tried_by(error.id()))
                {
                    let context = &probe.context;
                    warn!(pod = %context.pod.name, container = %context.container().name, probe = context.kind.as_str(), %error, "Probe attempt panicked");
                    let key = key as u32;
                    self.probes[key as usize].attempt = None;
                    self.schedule_next(key);
                }
            }
            // It was aborted.
            Err(_) => {}
        }
    }

    /// Counts an attempt and publishes the result.
    fn note(&mut self, key: u32, done: &FinishedAttempt) {
        let probe = &mut self.probes[key as usize];
        let attempt = probe.counted(done.attempt);
        probe.streak.note(attempt, probe.context.probe());
        let confirmed = probe.is_confirmed_by(attempt);
        if done.late > 0 {
            probe.note_late(done.late);
        }
        let held = probe.streak.is_held();
        if !held {
            self.schedule_next(key);
        }
        let probe = &self.probes[key as usize];
        let context = &probe.context;
        debug!(pod = %context.pod.name, container = %context.container().name, probe = context.kind.as_str(), attempt = ?done.attempt, latency = ?done.report.latency, "Probe attempt finished");
        let at = self.clock.now();
        self.state.change(&context.pod.uid, |row| {
            let container = &context.container().name;
            row.count(container, context.kind, done.attempt, done.report.latency);
            let outcome = probe.streak.outcome();
            if confirmed {
                row.publish(&context.id, context.kind, outcome);
            }
            let Some(report) = row.report(&context.id, context.kind) else {
                return;
            };
            report.outcome = outcome;
            report.length = probe.streak.length();
            report.last = Some(attempt);
            report.at = Some(at);
            report.latency = done.report.latency;
            report.late = probe.late;
            let output = &done.report.output;
            let kept = &output[..output.floor_char_boundary(OUTPUT_KEPT)];
            if *report.output != *kept {
                report.output = kept.into();
            }
            if held {
                report.next = None;
            }
        });
        if attempt != AttemptOutcome::Early {
            self.raise(context, done);
        }
    }

    fn schedule_next(&mut self, key: u32) {
        let probe = &self.probes[key as usize];
        let now = Instant::now();
        let since = now.saturating_duration_since(probe.due);
        let wait = timing::next(since, probe.context.probe().period);
        self.schedule(key, now + wait);
    }

    /// The events that the kubelet raises, in its words.
    fn raise(&self, context: &ProbeContext, done: &FinishedAttempt) {
        let (reason, how) = match (done.attempt, done.report.verdict) {
            // A late attempt is a problem of the node. Events of all containers would add load just
            // when it is overloaded, so only the log reports it.
            (AttemptOutcome::Late, _) | (_, ProbeOutcome::Passed) => return,
            (_, ProbeOutcome::Warned) => (event_reason::PROBE_WARNING, "probe warning"),
            (_, ProbeOutcome::Failed | ProbeOutcome::TimedOut) => {
                (event_reason::UNHEALTHY, "probe failed")
            }
            (_, ProbeOutcome::Errored) => (
                event_reason::UNHEALTHY,
                "probe errored and resulted in unknown state",
            ),
        };
        let Container { name, .. } = context.container();
        let message = format!("{} {how}: {}", context.kind.as_str(), done.report.output);
        self.recorder.pod(
            &context.pod,
            Some(name),
            EventType::Warning,
            reason,
            &message,
        );
    }
}
