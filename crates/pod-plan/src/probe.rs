//! Probes: the ones to run now, and their results after the thresholds.

mod streak;
mod targets;

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::{container::Container, probe::Probe};
use rubelet_base::ContainerId;
use serde::{Deserialize, Serialize};

pub use streak::{AttemptOutcome, ProbeStreak};
pub(crate) use targets::targets;

/// The kind of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProbeKind {
    /// `startupProbe`: until it succeeds, the others wait.
    Startup,
    /// `livenessProbe`: its failure kills the container.
    Liveness,
    /// `readinessProbe`: its result is the container's readiness.
    Readiness,
}

impl ProbeKind {
    /// The name at the start of events: `Liveness probe failed: …`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
        }
    }

    /// The probe of this kind.
    #[must_use]
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Startup => container.startup.as_deref(),
            Self::Liveness => container.liveness.as_deref(),
            Self::Readiness => container.readiness.as_deref(),
        }
    }
}

/// The result of a probe, after its thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeResult {
    /// No result yet.
    Unknown,
    /// It succeeded `successThreshold` times in a row.
    Success,
    /// It failed `failureThreshold` times in a row.
    Failure,
}

/// The results of the probes of one pod's containers. A result belongs to one instance of a
/// container, so results need no reset on a restart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbeResults(BTreeMap<(ContainerId, ProbeKind), ProbeResult>);

impl ProbeResults {
    /// The result of a probe of an instance; `None` if it has not run since the agent started.
    #[must_use]
    pub fn get(&self, id: &ContainerId, kind: ProbeKind) -> Option<ProbeResult> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(id.clone(), kind)).copied()
    }

    /// Sets the result of a probe; true if it changed.
    pub fn set(&mut self, id: ContainerId, kind: ProbeKind, outcome: ProbeResult) -> bool {
        self.0.insert((id, kind), outcome) != Some(outcome)
    }

    /// Removes all results for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&ContainerId, ProbeKind) -> bool) {
        self.0.retain(|(id, kind), _| keep(id, *kind));
    }
}

/// A probe to run from now on, until a plan no longer contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeTarget {
    /// The container's name in the pod.
    pub container: Box<str>,
    /// The kind of the probe.
    pub kind: ProbeKind,
    /// The instance to probe.
    pub id: ContainerId,
    /// When the instance started: `initialDelaySeconds` counts from then.
    pub started_at: Timestamp,
    /// The result until the probe changes it.
    pub initial: ProbeResult,
}
