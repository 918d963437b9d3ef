//! The task that tries all probes of the node.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::container::Container;
use rubelet_base::PodUid;
use rubelet_cri::RuntimeService;
use rubelet_node_state::{
    clock::Clock,
    events::{EventType, Recorder},
};
use rubelet_pod_plan::probe::Attempt;
use slab::Slab;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tracing::{debug, warn};

use super::{
    ProberHandle,
    attempt::{FinishedAttempt, Tools},
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
/// How much of an output is kept for explanations.
const OUTPUT_KEPT: usize = 1024;

/// The body of the task.
pub struct ProberTask {
    pub(super) rows: Arc<ProbeState>,
    pub(super) clock: Clock,
    /// When this process began to probe: containers that were started before were found running.
    pub(super) began: Timestamp,
    pub(super) wheel: Wheel,
    pub(super) probes: Slab<Probe>,
    pub(super) pods: HashMap<PodUid, PodProbes>,
    recorder: Recorder,
    tools: Arc<Tools>,
    pub(super) attempts: JoinSet<(u32, FinishedAttempt)>,
    /// When tick 0 was.
    origin: Instant,
    due: Vec<u32>,
}

impl ProberTask {
    /// The task, and the handle that others talk to it by.
    #[must_use]
    pub fn new(
        runtime: Arc<dyn RuntimeService>,
        net: Arc<dyn NetProbe>,
        recorder: Recorder,
        clock: Clock,
    ) -> (Self, ProberHandle) {
        let handle = ProberHandle::default();
        let began = clock.now();
        handle.rows.begin(began);
        let task = Self {
            rows: Arc::clone(&handle.rows),
            began,
            clock,
            wheel: Wheel::new(),
            probes: Slab::new(),
            pods: HashMap::new(),
            recorder,
            tools: Arc::new(Tools::new(runtime, net)),
            attempts: JoinSet::new(),
            origin: Instant::now(),
            due: Vec::new(),
        };
        (task, handle)
    }

    /// Tries probes until it is dropped. Without probes nothing wakes it.
    pub async fn run(mut self) {
        self.work().await;
    }

    pub(super) async fn work(&mut self) {
        let rows = Arc::clone(&self.rows);
        let mut timer = pin!(sleep_until(self.origin));
        loop {
            let wake = self.wheel.next().map(|tick| self.instant(tick));
            if let Some(at) = wake.filter(|at| *at != timer.deadline()) {
                timer.as_mut().reset(at);
            }
            // Cancel safety: a change stays noted, a joined attempt is only taken when it is
            // returned, and the timer is set again.
            tokio::select! {
                () = rows.changed() => self.take_changes(),
                Some(ended) = self.attempts.join_next_with_id(), if !self.attempts.is_empty() => {
                    self.finish(ended);
                }
                () = &mut timer, if wake.is_some() => self.begin_due(),
            }
        }
    }

    /// Sets when a probe is tried next.
    pub(super) fn schedule(&mut self, key: u32, due: Instant) {
        let since = due.saturating_duration_since(self.origin).as_nanos();
        // Rounded up: no attempt begins before it is due.
        let tick = u64::try_from(since.div_ceil(TICK.as_nanos())).unwrap_or(u64::MAX);
        self.wheel.set(key, tick);
        let next = self.wall(due);
        let probe = &mut self.probes[key as usize];
        probe.due = due;
        let trial = &probe.trial;
        self.rows.change(&trial.pod.uid, |row| {
            if let Some(report) = row.report(&trial.id, trial.kind) {
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
        probe.waits_for_address = probe.trial.lacks_address();
        if probe.waits_for_address {
            let trial = &probe.trial;
            self.rows.change(&trial.pod.uid, |row| {
                if let Some(report) = row.report(&trial.id, trial.kind) {
                    report.next = None;
                }
            });
            return;
        }
        let (tools, trial, due) = (Arc::clone(&self.tools), Arc::clone(&probe.trial), probe.due);
        let attempt = async move { (key, tools.attempt(&trial, due).await) };
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
                    let trial = &probe.trial;
                    warn!(pod = %trial.pod.name, container = %trial.container().name, probe = trial.kind.as_str(), %error, "An attempt of a probe panicked");
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
        probe.streak.note(attempt, probe.trial.probe());
        let confirmed = probe.is_confirmed_by(attempt);
        if done.late > 0 {
            probe.note_late(done.late);
        }
        let held = probe.streak.is_held();
        if !held {
            self.schedule_next(key);
        }
        let probe = &self.probes[key as usize];
        let trial = &probe.trial;
        debug!(pod = %trial.pod.name, container = %trial.container().name, probe = trial.kind.as_str(), attempt = ?done.attempt, latency = ?done.report.latency, "Probe was tried");
        let at = self.clock.now();
        self.rows.change(&trial.pod.uid, |row| {
            let container = &trial.container().name;
            row.count(container, trial.kind, done.attempt, done.report.latency);
            let outcome = probe.streak.outcome();
            if confirmed {
                row.publish(&trial.id, trial.kind, outcome);
            }
            let Some(report) = row.report(&trial.id, trial.kind) else {
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
        if attempt != Attempt::Early {
            self.raise(trial, done);
        }
    }

    fn schedule_next(&mut self, key: u32) {
        let probe = &self.probes[key as usize];
        let now = Instant::now();
        let since = now.saturating_duration_since(probe.due);
        let wait = timing::next(since, probe.trial.probe().period);
        self.schedule(key, now + wait);
    }

    /// The events that the kubelet raises, in its words.
    fn raise(&self, trial: &ProbeContext, done: &FinishedAttempt) {
        let (reason, how) = match (done.attempt, done.report.verdict) {
            // A late attempt is the node's trouble, and events of all containers would come just
            // when it has the least time for them: only the log reports it.
            (Attempt::Late, _) | (_, ProbeOutcome::Passed) => return,
            (_, ProbeOutcome::Warned) => ("ProbeWarning", "probe warning"),
            (_, ProbeOutcome::Failed | ProbeOutcome::TimedOut) => ("Unhealthy", "probe failed"),
            (_, ProbeOutcome::Errored) => {
                ("Unhealthy", "probe errored and resulted in unknown state")
            }
        };
        let Container { name, .. } = trial.container();
        let message = format!("{} {how}: {}", trial.kind.as_str(), done.report.output);
        self.recorder
            .pod(&trial.pod, Some(name), EventType::Warning, reason, &message);
    }
}
