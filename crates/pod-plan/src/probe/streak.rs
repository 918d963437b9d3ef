//! Thresholds: from single attempts to an outcome (kubelet: `prober/worker.go`).

use rubelet_api::probe::Probe;

use super::{ProbeKind, ProbeResult};

/// How one attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The container passed.
    Success,
    /// The container failed, or did not answer in time.
    Failure,
    /// The attempt could not be made: it proves nothing about the container.
    Errored,
    /// The container failed in its first moments, before a period was over: it has
    /// `failureThreshold` whole periods.
    Early,
    /// The agent ran it so late that its failure proves nothing about the container.
    Late,
}

/// Equal attempts in a row, and what they amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streak {
    kind: ProbeKind,
    outcome: ProbeResult,
    last: Option<Attempt>,
    length: u32,
    held: bool,
}

impl Streak {
    /// The streak of a probe that was not tried yet.
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

    /// What the attempts amount to.
    #[must_use]
    pub fn outcome(&self) -> ProbeResult {
        self.outcome
    }

    /// How many of the last attempts ended as the last one did.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.length
    }

    /// True if this instance needs no more attempts: it failed its liveness probe, or its startup
    /// probe has decided.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Counts an attempt; true if that changes the outcome. Attempts that prove nothing about the
    /// container count neither way.
    pub fn note(&mut self, attempt: Attempt, probe: &Probe) -> bool {
        let (needed, outcome) = match attempt {
            Attempt::Success => (probe.success_threshold, ProbeResult::Success),
            Attempt::Failure => (probe.failure_threshold, ProbeResult::Failure),
            Attempt::Errored | Attempt::Early | Attempt::Late => return false,
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
