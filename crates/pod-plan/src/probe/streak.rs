//! Thresholds: the result of a probe from its attempts (kubelet: `prober/worker.go`).

use rubelet_api::probe::Probe;

use super::{ProbeKind, ProbeResult};

/// The outcome of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The probe succeeded.
    Success,
    /// The probe failed or timed out.
    Failure,
    /// The attempt could not be made: it proves nothing about the container.
    Errored,
    /// The probe failed within the first period: the container has `failureThreshold` whole
    /// periods.
    Early,
    /// The agent was so late that the failure proves nothing about the container.
    Late,
}

/// Consecutive attempts with the same outcome, and the result of the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeStreak {
    kind: ProbeKind,
    outcome: ProbeResult,
    last: Option<AttemptOutcome>,
    length: u32,
    held: bool,
}

impl ProbeStreak {
    /// The streak of a probe without attempts.
    #[must_use]
    pub fn new(kind: ProbeKind, initial: ProbeResult) -> Self {
        Self {
            kind,
            outcome: initial,
            last: None,
            length: 0,
            held: false,
        }
    }

    /// The result of the probe.
    #[must_use]
    pub fn outcome(&self) -> ProbeResult {
        self.outcome
    }

    /// The number of consecutive attempts with the last outcome.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// True if this instance needs no more attempts: its liveness probe failed, or its startup
    /// probe has a result.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Counts an attempt; true if the result changed. Attempts that prove nothing about the
    /// container are ignored.
    pub fn note(&mut self, attempt: AttemptOutcome, probe: &Probe) -> bool {
        let (needed, outcome) = match attempt {
            AttemptOutcome::Success => (probe.success_threshold, ProbeResult::Success),
            AttemptOutcome::Failure => (probe.failure_threshold, ProbeResult::Failure),
            AttemptOutcome::Errored | AttemptOutcome::Early | AttemptOutcome::Late => return false,
        };
        if self.last == Some(attempt) {
            self.length = self.length.saturating_add(1);
        } else {
            self.last = Some(attempt);
            self.length = 1;
        }
        if self.length < needed {
            return false;
        }
        let changed = self.outcome != outcome;
        self.outcome = outcome;
        self.held = match self.kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => outcome == ProbeResult::Failure,
            ProbeKind::Readiness => false,
        };
        changed
    }
}

#[cfg(test)]
mod tests;
