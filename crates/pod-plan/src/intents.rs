//! Requests of an operator for one pod beside its manifest. Level-triggered: an intent stays until
//! it is fulfilled or the pod is removed, so repeating it, or losing the response, is harmless.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_api::status::ConditionStatus;
use rubelet_base::ContainerId;
use serde::{Deserialize, Serialize};

use crate::after;

/// Type of the condition with the reason for a disruption. Controllers that evict pods set it, too.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// All requests of operators for one pod. Kept across restarts of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperatorIntents {
    /// Containers to restart, by name.
    #[serde(default)]
    pub restarts: BTreeMap<Box<str>, RestartIntent>,
    /// Conditions that are set from outside the agent, such as those of readiness gates.
    #[serde(default)]
    pub conditions: Vec<ExternalCondition>,
    /// Ephemeral containers, each the JSON of a v1 EphemeralContainer.
    #[serde(default)]
    pub ephemeral: Vec<Box<str>>,
    /// The reason to terminate the pod with phase `Failed` although its source still defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// Remove the containers of the pod once it has terminated: the node runs out of disk space.
    #[serde(default)]
    pub discard_containers: bool,
    /// A grace period shorter than the one with which the pod's termination began.
    #[serde(default)]
    pub grace: Option<Duration>,
    /// When that grace period was requested, which is when it starts to count.
    #[serde(default)]
    pub grace_from: Option<Timestamp>,
}

impl OperatorIntents {
    /// Has the pod terminated with phase `Failed`. `disruption` is the condition that says why; it
    /// replaces an earlier one of its type.
    pub fn evict(&mut self, eviction: Eviction, disruption: ExternalCondition) {
        self.eviction = Some(eviction);
        self.conditions.retain(|one| one.kind != disruption.kind);
        self.conditions.push(disruption);
    }

    /// Takes back [`Self::evict`] with this reason, and its condition.
    pub fn revoke_eviction(&mut self, reason: &str) {
        if self
            .eviction
            .take_if(|eviction| *eviction.reason == *reason)
            .is_some()
        {
            self.conditions
                .retain(|one| *one.kind != *DISRUPTION_TARGET);
        }
    }

    /// Gives a pod that is being deleted this grace period from now on, unless its own is shorter.
    pub fn shorten_grace(&mut self, grace: Duration, now: Timestamp) {
        if self.grace.is_none_or(|planned| planned > grace) {
            self.grace = Some(grace);
            self.grace_from = Some(now);
        }
    }

    /// When SIGKILL is due for a pod whose termination began at `since` with the grace period
    /// `planned`.
    #[must_use]
    pub fn kill_at(&self, since: Timestamp, planned: Duration) -> Timestamp {
        let due = after(since, planned);
        match (self.grace, self.grace_from) {
            (Some(grace), Some(from)) => due.min(after(from.max(since), grace)),
            (Some(grace), None) => due.min(after(since, grace)),
            (None, _) => due,
        }
    }
}

/// Reason and message of a pod that is terminated before its containers exit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// `status.reason`.
    pub reason: Box<str>,
    /// `status.message`.
    pub message: Box<str>,
    /// Grace period, if it is shorter than that of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Duration>,
}

/// A request to restart a container now, without back-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartIntent {
    /// The instance to replace; `None` if the container had none: then only its failed start is
    /// retried at once. Fulfilled once another instance exists.
    pub instance: Option<ContainerId>,
    /// When it was requested.
    pub at: Timestamp,
}

/// A condition set from outside the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExternalCondition {
    /// `type`.
    pub kind: Box<str>,
    /// `status`.
    pub status: ConditionStatus,
    /// `reason`.
    #[serde(default)]
    pub reason: Box<str>,
    /// `message`.
    #[serde(default)]
    pub message: Box<str>,
    /// `lastTransitionTime`.
    pub last_transition: Timestamp,
}

impl ExternalCondition {
    /// The condition of a pod that its node terminates, as the kubelet sets it for evictions and
    /// preemptions.
    #[must_use]
    pub fn terminated_by_kubelet(message: &str, at: Timestamp) -> Self {
        Self {
            kind: DISRUPTION_TARGET.into(),
            status: ConditionStatus::True,
            reason: "TerminationByKubelet".into(),
            message: message.into(),
            last_transition: at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_grace_counts_from_its_request_and_never_delays_the_end() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let rows = [
            (None, None, 160),
            (Some(5), Some(110), 115),
            (Some(5), Some(158), 160),
            (Some(70), Some(110), 160),
            (Some(5), None, 105),
            // Requested while an earlier pod of this UID was terminating.
            (Some(5), Some(50), 105),
        ];
        for (grace, from, due) in rows {
            let intents = OperatorIntents {
                grace: grace.map(Duration::from_secs),
                grace_from: from.map(at),
                ..OperatorIntents::default()
            };
            let found = intents.kill_at(at(100), Duration::from_secs(60));
            assert_eq!(found, at(due), "{grace:?} {from:?}");
        }
    }
}
