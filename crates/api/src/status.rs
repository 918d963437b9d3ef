//! What Rubelet says of a pod: the compact form of `status`. It serialises for the record that
//! survives a restart of the agent; the Kubernetes form is made by [`crate::wire`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `status` of a pod.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodStatus {
    /// `phase`.
    pub phase: Phase,
    /// `reason`: empty unless the node ended or refused the pod.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Box<str>,
    /// `message`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
    /// `startTime`: when the agent first saw the pod.
    pub start_time: Timestamp,
    /// `podIPs`, the primary one first.
    pub pod_ips: Vec<Box<str>>,
    /// `conditions`, in upstream's order.
    pub conditions: Vec<Condition>,
    /// `observedGeneration`: which version of the specification this is about; 0 if unknown.
    #[serde(default)]
    pub observed_generation: i64,
    /// `initContainerStatuses`, in the order of the specification.
    pub init_containers: Vec<ContainerStatus>,
    /// `containerStatuses`, sorted by name.
    pub containers: Vec<ContainerStatus>,
    /// `ephemeralContainerStatuses`, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ephemeral_containers: Vec<ContainerStatus>,
}

impl PodStatus {
    /// The condition of that type.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions
            .iter()
            .find(|condition| *condition.kind == *kind)
    }

    /// Statuses of init, regular and ephemeral containers.
    pub fn all_containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        let lists = [
            &self.init_containers,
            &self.containers,
            &self.ephemeral_containers,
        ];
        lists.into_iter().flatten()
    }

    /// Those of [`Self::all_containers`] that run.
    pub fn running_containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.all_containers()
            .filter(|status| matches!(status.state, ContainerState::Running { .. }))
    }

    /// The status of the container of that name.
    #[must_use]
    pub fn container(&self, name: &str) -> Option<&ContainerStatus> {
        self.all_containers().find(|status| *status.name == *name)
    }
}

/// `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Accepted; at least one container has not been started.
    Pending,
    /// All containers were made and at least one runs or restarts.
    Running,
    /// All containers ended with 0 and none will restart.
    Succeeded,
    /// All containers ended, at least one in failure, and none will restart.
    Failed,
}

impl Phase {
    /// The value of `status.phase`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// The phase of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Pending, Self::Running, Self::Succeeded, Self::Failed];
        all.into_iter().find(|phase| phase.as_str() == name)
    }

    /// True for phases that a pod never leaves.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// One entry of `conditions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// `type`.
    pub kind: Box<str>,
    /// `status`.
    pub status: ConditionStatus,
    /// `reason`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub reason: Box<str>,
    /// `message`.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
    /// `lastTransitionTime`: when `status` last changed.
    pub last_transition: Timestamp,
    /// `observedGeneration`: which version of the specification this is about; 0 if unknown.
    #[serde(default)]
    pub observed_generation: i64,
}

/// `status` of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`: only conditions that others set have it.
    Unknown,
}

impl ConditionStatus {
    /// The value of `status`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::True, Self::False, Self::Unknown];
        all.into_iter().find(|status| status.as_str() == name)
    }

    /// True for `True` alone.
    #[must_use]
    pub fn is_true(self) -> bool {
        self == Self::True
    }
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// One entry of `containerStatuses` or `initContainerStatuses`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContainerStatus {
    /// `name`.
    pub name: Box<str>,
    /// `image`: the name that the runtime resolved, else the one in the specification.
    pub image: Box<str>,
    /// `imageID`.
    pub image_id: Box<str>,
    /// `containerID` without the runtime's scheme, which [`crate::wire`] adds; empty before the
    /// first start.
    pub container_id: Box<str>,
    /// `ready`.
    pub ready: bool,
    /// `started`.
    pub started: bool,
    /// `restartCount`.
    pub restart_count: u32,
    /// `state`.
    pub state: ContainerState,
    /// `lastState`: how the instance before this one ended.
    pub last_state: Option<Terminated>,
    /// `user.linux`: the user of its first process; `None` if the runtime does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Box<ContainerUser>>,
    /// Paths of mounts that the runtime made read-only with all that is mounted below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recursive_read_only: Vec<Box<str>>,
}

/// `user.linux` of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerUser {
    /// `uid`.
    pub uid: i64,
    /// `gid`.
    pub gid: i64,
    /// `supplementalGroups`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supplemental_groups: Vec<i64>,
}

/// `state` of a container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ContainerState {
    /// Not running yet, or between two runs.
    Waiting {
        /// `reason`.
        reason: Box<str>,
        /// `message`.
        message: Box<str>,
    },
    /// Running.
    Running {
        /// `startedAt`.
        started_at: Timestamp,
    },
    /// Ended.
    Terminated(Terminated),
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terminated {
    /// `exitCode`.
    pub exit_code: i32,
    /// `reason`.
    pub reason: Box<str>,
    /// `message`.
    pub message: Box<str>,
    /// `startedAt`.
    pub started_at: Option<Timestamp>,
    /// `finishedAt`.
    pub finished_at: Option<Timestamp>,
    /// `containerID` without the runtime's scheme.
    pub container_id: Box<str>,
}
