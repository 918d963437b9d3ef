//! What an operator requested of one pod beside its manifest. Level-triggered: an intent stays
//! until it is fulfilled or the pod is removed, so that repeating one, or losing the answer to it,
//! does no harm.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_api::status::ConditionStatus;
use rubelet_base::ContainerId;
use serde::{Deserialize, Serialize};

use crate::after;

/// All requests for one pod. Kept across restarts of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Intents {
    /// Containers to restart, by name.
    #[serde(default)]
    pub restarts: BTreeMap<Box<str>, RestartIntent>,
    /// Conditions that others than the agent set, such as those of readiness gates.
    #[serde(default)]
    pub conditions: Vec<ExternalCondition>,
    /// Ephemeral containers, each the JSON of a v1 EphemeralContainer.
    #[serde(default)]
    pub ephemeral: Vec<Box<str>>,
    /// Why the pod must end and fail, though its source wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction: Option<Eviction>,
    /// A grace that is shorter than the one with which the pod's end began.
    #[serde(default)]
    pub grace: Option<Duration>,
    /// When that grace was requested: it counts from then on.
    #[serde(default)]
    pub grace_from: Option<Timestamp>,
}

impl Intents {
    /// When SIGKILL is due of a pod whose end began then, with this grace.
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

/// Why a pod ends before its containers do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Eviction {
    /// `status.reason`.
    pub reason: Box<str>,
    /// `status.message`.
    pub message: Box<str>,
}

/// A container to be restarted now, without any back-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartIntent {
    /// The instance to be replaced; `None` if there was none, so that only what keeps it
    /// from starting must be tried again at once. Fulfilled once another instance is there.
    pub instance: Option<ContainerId>,
    /// When it was requested.
    pub at: Timestamp,
}

/// A condition set by others.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_grace_counts_from_when_it_was_asked_for_and_never_makes_the_end_later() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let rows = [
            (None, None, 160),
            (Some(5), Some(110), 115),
            (Some(5), Some(158), 160),
            (Some(70), Some(110), 160),
            (Some(5), None, 105),
            // Asked for while an earlier pod of this UID ended.
            (Some(5), Some(50), 105),
        ];
        for (grace, from, due) in rows {
            let intents = Intents {
                grace: grace.map(Duration::from_secs),
                grace_from: from.map(at),
                ..Intents::default()
            };
            let found = intents.kill_at(at(100), Duration::from_secs(60));
            assert_eq!(found, at(due), "{grace:?} {from:?}");
        }
    }
}
