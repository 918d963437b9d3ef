//! One probe and its state.

use std::{sync::Arc, time::Duration};

use rubelet_pod_plan::{
    ProbeKind, ProbeResult,
    probe::{AttemptOutcome, ProbeStreak},
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
    pub(super) context: Arc<ProbeContext>,
    pub(super) streak: ProbeStreak,
    /// True if it is due and the pod has no address yet.
    pub(super) waits_for_address: bool,
    /// The point of the grid for which it is set, or was set last.
    pub(super) due: Instant,
    /// The first of these points.
    pub(super) first: Instant,
    /// The attempt in progress.
    pub(super) attempt: Option<AbortHandle>,
    /// Number of tries that the agent ran too late.
    pub(super) late: u64,
    late_logged: Option<Instant>,
}

impl Probe {
    pub(super) fn new(context: Arc<ProbeContext>, streak: ProbeStreak) -> Self {
        Self {
            context,
            streak,
            waits_for_address: false,
            due: Instant::now(),
            first: Instant::now(),
            attempt: None,
            late: 0,
            late_logged: None,
        }
    }

    /// Aborts the attempt in progress; its result is dropped.
    pub(super) fn abort(&mut self) {
        if let Some(attempt) = self.attempt.take() {
            attempt.abort();
        }
    }

    /// True if the attempt in progress is this task.
    pub(super) fn is_tried_by(&self, id: Id) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.id() == id)
    }

    /// True if an attempt ended with the result that the probe already has.
    pub(super) fn is_confirmed_by(&self, attempt: AttemptOutcome) -> bool {
        match self.streak.outcome() {
            ProbeResult::Unknown => false,
            ProbeResult::Success => attempt == AttemptOutcome::Success,
            ProbeResult::Failure => attempt == AttemptOutcome::Failure,
        }
    }

    /// The outcome as it counts: a container is not killed for a failure within the first period.
    pub(super) fn counted(&self, attempt: AttemptOutcome) -> AttemptOutcome {
        let ends_it = self.context.kind != ProbeKind::Readiness;
        if attempt == AttemptOutcome::Failure && ends_it && self.due <= self.first {
            AttemptOutcome::Early
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
            let context = &self.context;
            warn!(pod = %context.pod.name, container = %context.container().name, probe = context.kind.as_str(), times = self.late, "Ignored a probe failure because the agent ran the probe too late; the node may be overloaded");
        }
    }
}
