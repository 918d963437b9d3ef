//! What an operator asked of one pod beside its manifest. Level-triggered: an intent stays until it
//! is fulfilled or the pod goes, so that repeating one, or losing the answer to it, does no harm.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rubelet_api::status::ConditionStatus;
use rubelet_base::ContainerId;
use serde::{Deserialize, Serialize};

/// All that was asked of one pod. Kept across restarts of the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Intents {
    /// Containers to restart, by name.
    #[serde(default)]
    pub restarts: BTreeMap<Box<str>, RestartIntent>,
    /// Conditions that others than the agent set, such as those of readiness gates.
    #[serde(default)]
    pub conditions: Vec<ForeignCondition>,
    /// Ephemeral containers, each the JSON of a v1 EphemeralContainer.
    #[serde(default)]
    pub ephemeral: Vec<Box<str>>,
    /// A grace that is shorter than the one with which the pod's end began.
    #[serde(default)]
    pub grace: Option<std::time::Duration>,
}

/// A container that is to be restarted now, without any back-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartIntent {
    /// The instance that is to be replaced; `None` if there was none, so that only what keeps it
    /// from starting is to be tried again at once. Fulfilled once another instance is there.
    pub instance: Option<ContainerId>,
    /// When it was asked.
    pub at: Timestamp,
}

/// A condition set by others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForeignCondition {
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
