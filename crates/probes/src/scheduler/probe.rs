//! One probe, and what its attempts amount to so far.

use std::{sync::Arc, time::Duration};

use rubelet_pod_plan::{
    ProbeKind, ProbeResult,
    probe::{Attempt, Streak},
};
use tokio::{
    task::{AbortHandle, Id},
    time::Instant,
};
use tracing::warn;

use super::probe_context::ProbeContext;

/// Shortest time between two log lines that the agent ran a probe late.
const LATE_LOG: Duration = Duration::from_secs(60);

/// One probe of one instance of a container.
pub(super) struct Probe {
    pub(super) trial: Arc<ProbeContext>,
    pub(super) streak: Streak,
    /// It was due, and the pod has no address yet.
    pub(super) waits_for_address: bool,
    /// The point of the grid for which it is set, or was set last.
    pub(super) due: Instant,
    /// The first of these points.
    pub(super) first: Instant,
    /// The attempt that is under way.
    pub(super) attempt: Option<AbortHandle>,
    /// How many tries the agent ran too late.
    pub(super) late: u64,
    late_logged: Option<Instant>,
}

impl Probe {
    pub(super) fn new(trial: Arc<ProbeContext>, streak: Streak) -> Self {
        Self {
            trial,
            streak,
            waits_for_address: false,
            due: Instant::now(),
            first: Instant::now(),
            attempt: None,
            late: 0,
            late_logged: None,
        }
    }

    /// Aborts the attempt that is under way; its result is dropped.
    pub(super) fn break_off(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.abort();
        }
    }

    /// True if the attempt that is under way is this task.
    pub(super) fn is_tried_by(&self, id: Id) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.id() == id)
    }

    /// True if an attempt ended with the result that the probe already has.
    pub(super) fn is_confirmed_by(&self, attempt: Attempt) -> bool {
        match self.streak.outcome() {
            ProbeResult::Unknown => false,
            ProbeResult::Success => attempt == Attempt::Success,
            ProbeResult::Failure => attempt == Attempt::Failure,
        }
    }

    /// An attempt as it counts: the container is not ended for what it does not do yet in its first
    /// period.
    pub(super) fn counted(&self, attempt: Attempt) -> Attempt {
        let ends_it = self.trial.kind != ProbeKind::Readiness;
        if attempt == Attempt::Failure && ends_it && self.due <= self.first {
            Attempt::Early
        } else {
            attempt
        }
    }

    /// Counts tries that the agent ran too late.
    pub(super) fn note_late(&mut self, times: u32) {
        self.late += u64::from(times);
        let logged = self.late_logged;
        if logged.is_none_or(|at| at.elapsed() >= LATE_LOG) {
            self.late_logged = Some(Instant::now());
            let trial = &self.trial;
            warn!(pod = %trial.pod.name, container = %trial.container().name, probe = trial.kind.as_str(), times = self.late, "The agent ran a probe so late that its failure does not count; the node may be overloaded");
        }
    }
}
