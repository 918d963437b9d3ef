//! The input of a plan.

use std::time::Duration;

use rubelet_api::{
    container::Container,
    pod::Pod,
    status::{ContainerStatus, PodStatus},
};

use crate::{
    history::History,
    intents::OperatorIntents,
    observed::{ObservedContainer, ObservedPod},
    probe::{ProbeKind, ProbeResult, ProbeResults},
};

/// Type of the condition that is true while all containers are being restarted in place.
pub(crate) const ALL_RESTARTING: &str = "AllContainersRestarting";

/// The input of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PodSnapshot<'a> {
    /// The pod as its source defines it.
    pub pod: &'a Pod,
    /// The result of the last inspection, which began after this agent's last step ended.
    pub observed: &'a ObservedPod,
    /// Past attempts and their back-offs.
    pub history: &'a History,
    /// The status published last.
    pub previous: Option<&'a PodStatus>,
    /// The target state of the pod: running or removed.
    pub target: Target,
    /// Settings from the node's configuration.
    pub settings: &'a PlanSettings,
    /// Results of probes.
    pub probes: &'a ProbeResults,
    /// Requests of an operator.
    pub intents: &'a OperatorIntents,
    /// Generation of the specification, or of the pod's deletion, that the plan is about; 0 if
    /// nobody counts.
    pub generation: i64,
}

impl<'a> PodSnapshot<'a> {
    /// The last published status of one container.
    #[must_use]
    pub fn published(&self, name: &str) -> Option<&'a ContainerStatus> {
        self.previous.and_then(|status| status.container(name))
    }

    /// The result of a probe of an instance. If the probe has not run since the agent started, the
    /// published result of the same instance.
    #[must_use]
    pub(crate) fn probe_outcome(
        &self,
        found: &ObservedContainer,
        kind: ProbeKind,
    ) -> Option<ProbeResult> {
        self.probes.get(&found.id, kind).or_else(|| {
            let old = self.published(&found.name)?;
            let same = *old.container_id == *found.id.as_str();
            let success = match kind {
                ProbeKind::Startup => old.started,
                ProbeKind::Readiness => old.ready,
                ProbeKind::Liveness => false,
            };
            (same && success).then_some(ProbeResult::Success)
        })
    }

    /// True if all containers were being restarted in place when the last status was published.
    #[must_use]
    pub(crate) fn was_restarting_all(&self) -> bool {
        let old = self.previous.and_then(|old| old.condition(ALL_RESTARTING));
        old.is_some_and(|condition| condition.status.is_true())
    }

    /// True if a running container counts as started: its postStart hook has run and its startup
    /// probe, if there is one, has succeeded.
    #[must_use]
    pub fn started(&self, container: &Container, found: &ObservedContainer) -> bool {
        !self.history.post_start_pending(&container.name, &found.id)
            && (container.startup.is_none()
                || self.probe_outcome(found, ProbeKind::Startup) == Some(ProbeResult::Success))
    }
}

/// The target state of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A source defines the pod: it runs.
    Run,
    /// No source defines the pod: stop it with this grace period and remove it.
    Remove {
        /// Time between SIGTERM and SIGKILL, at least 1 s.
        grace: Duration,
    },
}

/// The part of the node's configuration that decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSettings {
    /// Longest crash back-off: `crashLoopBackOff.maxContainerRestartPeriod`, default 300 s.
    pub crash_backoff_max: Duration,
    /// Addresses of the node, for pods on the host's network.
    pub node_ips: Vec<Box<str>>,
}

impl Default for PlanSettings {
    fn default() -> Self {
        Self {
            crash_backoff_max: Duration::from_secs(300),
            node_ips: Vec::new(),
        }
    }
}
