//! Probes: which must be tried now, and what their attempts amount to.

mod streak;
mod targets;

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::{container::Container, probe::Probe};
use rubelet_base::ContainerId;
use serde::{Deserialize, Serialize};

pub use streak::{Attempt, Streak};
pub(crate) use targets::targets;

/// Which probe of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProbeKind {
    /// `startupProbe`: until it succeeds, the others wait.
    Startup,
    /// `livenessProbe`: its failure ends the container.
    Liveness,
    /// `readinessProbe`: its result is the container's readiness.
    Readiness,
}

impl ProbeKind {
    /// As events begin: `Liveness probe failed: …`.
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
/// container: there is no old result to forget.
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

    /// Notes the result of a probe; true if that is new.
    pub fn set(&mut self, id: ContainerId, kind: ProbeKind, outcome: ProbeResult) -> bool {
        self.0.insert((id, kind), outcome) != Some(outcome)
    }

    /// Forgets all of which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(&ContainerId, ProbeKind) -> bool) {
        self.0.retain(|(id, kind), _| keep(id, *kind));
    }
}

/// A probe to be tried from now on, until a plan no longer names it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeTarget {
    /// The container's name in the pod; its probe of this kind is tried.
    pub container: Box<str>,
    /// Which probe.
    pub kind: ProbeKind,
    /// The instance it is about.
    pub id: ContainerId,
    /// When that one was started: `initialDelaySeconds` counts from here.
    pub started_at: Timestamp,
    /// The result until the probe has another one.
    pub initial: ProbeResult,
}
