//! Why a pod is in its state: the document of `rubelet why`. The agent fills it in; the command
//! line turns it into sentences.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `PodExplanation` of `node.rubelet.dev/v1alpha1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// When this was written: ages count from here.
    pub time: Timestamp,
    /// `status.phase`.
    pub phase: String,
    /// Since when, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// `status.reason`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// `status.message`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The condition Ready.
    pub ready: bool,
    /// Since when Ready has this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_since: Option<Timestamp>,
    /// The pod itself, or objects that it references, that the API server did not confirm: their
    /// last known state is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unconfirmed: Vec<String>,
    /// The progress of the pod's termination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<TerminationExplanation>,
    /// The effect of an edit of its manifest; absent for pods of the API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_edits: Option<ManifestEditsExplanation>,
    /// Why the pod's sandbox could not be created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<FailureExplanation>,
    /// Why a part of the pod could not be stopped or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teardown: Option<FailureExplanation>,
    /// Init containers, sidecars, regular and ephemeral containers, in that order.
    pub containers: Vec<ContainerExplanation>,
    /// Readiness gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readiness_gates: Vec<ReadinessGateExplanation>,
    /// The reasons of the last sync plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<String>,
}

/// The effects of edits of a pod's manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestEditsExplanation {
    /// `Replace` or `InPlace`, as `rubelet.staticPodEdits`.
    pub mode: String,
    /// The pod ends so that another one can start, which its manifest defines now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub being_replaced: bool,
    /// The pod that ended so that this one could start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedPodExplanation>,
}

/// A pod that ended so that another one of its name could start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedPodExplanation {
    /// Its `metadata.uid`.
    pub uid: String,
    /// When nothing was left of it.
    pub at: Timestamp,
}

/// A pod that is being removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TerminationExplanation {
    /// When it was no longer wanted.
    pub since: Timestamp,
    /// From SIGTERM to SIGKILL.
    pub grace_seconds: u64,
    /// When SIGKILL is due.
    pub kill_at: Timestamp,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailureExplanation {
    /// In one word.
    pub reason: String,
    /// What went wrong.
    pub message: String,
    /// The time of the failure.
    pub at: Timestamp,
    /// When it is tried again.
    pub next_try: Timestamp,
}

/// A readiness gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGateExplanation {
    /// Type of the condition.
    pub condition: String,
    /// `status` of that condition; `None` if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Its message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl ReadinessGateExplanation {
    /// True if it does not keep the pod from being ready.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status.as_deref() == Some("True")
    }
}

/// The list that a container is in, and whether it keeps running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ContainerKind {
    /// Of `initContainers`, without `restartPolicy: Always`.
    Init,
    /// Of `initContainers`, with `restartPolicy: Always`.
    Sidecar,
    /// Of `containers`.
    Regular,
    /// Of `ephemeralContainers`.
    Ephemeral,
}

impl ContainerKind {
    /// As sentences call it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Init => "init container",
            Self::Sidecar => "sidecar",
            Self::Regular => "container",
            Self::Ephemeral => "ephemeral container",
        }
    }
}

/// One container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerExplanation {
    /// Its name.
    pub name: String,
    /// The kind of the container.
    pub kind: ContainerKind,
    /// The container's state.
    pub state: ExplainedState,
    /// `ready` of its status.
    pub ready: bool,
    /// `started` of its status.
    pub started: bool,
    /// True if it has a startup probe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_startup_probe: bool,
    /// True if its postStart hook has not ended yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_start_runs: bool,
    /// `restartCount`.
    pub restarts: u32,
    /// When a restart was requested that is not done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart_asked: Option<Timestamp>,
    /// When its start is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Timestamp>,
    /// The copy of its image's volumes, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_copy: Option<VolumeCopy>,
    /// The last start that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_start: Option<FailureExplanation>,
    /// The back-off before the next start, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_off: Option<BackOff>,
    /// The exits of its last instances, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<EndExplanation>,
    /// Its probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeExplanation>,
    /// The last lines of its log, if it is not up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ExplainedState {
    /// It does not run yet, or does not run again yet.
    Waiting {
        /// In one word.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// In a sentence.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// It runs.
    Running {
        /// Its start.
        since: Timestamp,
    },
    /// It has exited and is not restarted.
    Ended {
        /// When it exited, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        /// Its exit code.
        exit_code: i32,
        /// The signal that the exit code stands for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        /// The runtime's reason.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// The termination message.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// The content of the volumes that an image declares is being copied for a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeCopy {
    /// Whole seconds since it was asked for.
    pub seconds: u64,
    /// False while it waits for other containers' copies.
    pub begun: bool,
    /// Files that are complete.
    pub files: u64,
    /// Bytes of content so far.
    pub bytes: u64,
}

/// The crash-loop back-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackOff {
    /// The delay after the next exit, or the one in progress.
    pub delay_seconds: u64,
    /// A run of this length resets the back-off.
    pub reset_seconds: u64,
}

/// The exit of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndExplanation {
    /// The runtime's identifier, with the runtime's name as a status has it; empty while that name
    /// is not known.
    #[serde(
        rename = "containerID",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub container_id: String,
    /// Its number, from 0.
    pub restart_count: u32,
    /// When it started; nothing if it never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// Its exit code.
    pub exit_code: i32,
    /// The signal that the exit code stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The runtime's reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The termination message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Why the agent stopped it; empty if it exited by itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stopped_because: String,
    /// The last lines of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// The state of one probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProbeExplanation {
    /// `startup`, `liveness` or `readiness`.
    pub kind: String,
    /// The result of its attempts: `Success`, `Failure` or `Unknown`.
    pub outcome: String,
    /// Result of the last attempt: `Success`, `Failure`, `Errored` if it could not be made, or
    /// `Late` if the agent ran it too late for it to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// Number of consecutive attempts with the last result that counted.
    pub in_a_row: u32,
    /// Number of consecutive failures after which the probe fails.
    pub failure_threshold: u32,
    /// When the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The duration of the last attempt.
    pub latency_millis: u64,
    /// Its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Number of failures that were not counted because the agent was late.
    #[serde(default)]
    pub late: u64,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
}
