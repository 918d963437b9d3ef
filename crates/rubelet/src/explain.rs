//! Why a pod is as it is: the document behind `rubelet why`, of which the agent knows the contents
//! and the command line makes sentences.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `PodExplanation` of `node.rubelet.dev/v1alpha1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodExplanation {
    /// `metadata.namespace`.
    pub(crate) namespace: String,
    /// `metadata.name`.
    pub(crate) name: String,
    /// `metadata.uid`.
    pub(crate) uid: String,
    /// When this was written: ages count from here.
    pub(crate) time: Timestamp,
    /// `status.phase`.
    pub(crate) phase: String,
    /// Since when, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    /// `status.reason`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// `status.message`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// The condition Ready.
    pub(crate) ready: bool,
    /// Since when Ready is what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready_since: Option<Timestamp>,
    /// What the API server did not confirm: the pod itself, or objects that it draws, which are used
    /// as they were known last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unconfirmed: Vec<String>,
    /// How the pod's end goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ending: Option<Ending>,
    /// Why the pod's sandbox could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<Trouble>,
    /// Why something of the pod could not be stopped or removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) teardown: Option<Trouble>,
    /// Init containers, sidecars, regular and ephemeral containers, in that order.
    pub(crate) containers: Vec<ContainerExplanation>,
    /// Readiness gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) readiness_gates: Vec<Gate>,
    /// The reasons of the last plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) plan: Vec<String>,
}

/// A pod that is being removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ending {
    /// When it was no longer wanted.
    pub(crate) since: Timestamp,
    /// From SIGTERM to SIGKILL.
    pub(crate) grace_seconds: u64,
    /// When SIGKILL is due.
    pub(crate) kill_at: Timestamp,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trouble {
    /// In one word.
    pub(crate) reason: String,
    /// What went wrong.
    pub(crate) message: String,
    /// When.
    pub(crate) at: Timestamp,
    /// When it is tried again.
    pub(crate) next_try: Timestamp,
}

/// A readiness gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Gate {
    /// Type of the condition.
    pub(crate) condition: String,
    /// `status` of that condition; `None` where nobody has set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Its message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

impl Gate {
    /// True if it does not keep the pod from being ready.
    pub(crate) fn is_open(&self) -> bool {
        self.status.as_deref() == Some("True")
    }
}

/// In which list a container stands, and whether it stays up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ContainerKind {
    Init,
    Sidecar,
    Regular,
    Ephemeral,
}

impl ContainerKind {
    /// As sentences call it.
    pub(crate) fn words(self) -> &'static str {
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
pub(crate) struct ContainerExplanation {
    /// Its name.
    pub(crate) name: String,
    /// What kind of container.
    pub(crate) kind: ContainerKind,
    /// What it does.
    pub(crate) state: State,
    /// `ready` of its status.
    pub(crate) ready: bool,
    /// `started` of its status.
    pub(crate) started: bool,
    /// True if it has a startup probe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_startup_probe: bool,
    /// True if its postStart hook has not ended yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) post_start_runs: bool,
    /// `restartCount`.
    pub(crate) restarts: u32,
    /// When somebody asked for a restart that is not done yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restart_asked: Option<Timestamp>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_try: Option<Timestamp>,
    /// The last start that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed_start: Option<Trouble>,
    /// How long a start waits after the last end; nothing where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) back_off: Option<BackOff>,
    /// How its last instances ended, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ends: Vec<EndExplanation>,
    /// Its probes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) probes: Vec<ProbeExplanation>,
    /// The last lines of its log, where it is not up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub(crate) enum State {
    /// It does not run yet, or does not run again yet.
    Waiting {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// It runs.
    Running { since: Timestamp },
    /// It has ended and is not started again.
    Ended {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
        exit_code: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
}

/// The crash back-off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BackOff {
    /// The wait after the next end, or the one that goes on.
    pub(crate) delay_seconds: u64,
    /// After so long a run the back-off begins anew.
    pub(crate) reset_seconds: u64,
}

/// How an instance ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EndExplanation {
    /// The runtime's identifier, with the runtime's name as a status has it; empty while that name
    /// is not known.
    #[serde(
        rename = "containerID",
        default,
        skip_serializing_if = "String::is_empty"
    )]
    pub(crate) container_id: String,
    /// Its number, from 0.
    pub(crate) restart_count: u32,
    /// When it started; nothing if it never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<Timestamp>,
    /// When it ended.
    pub(crate) finished_at: Timestamp,
    /// Its exit code.
    pub(crate) exit_code: i32,
    /// The signal that the exit code stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<String>,
    /// The runtime's reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// The termination message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// Why the agent stopped it; empty if it ended by itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) stopped_because: String,
    /// The last lines of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) log: Vec<String>,
}

/// What one probe says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProbeExplanation {
    /// `startup`, `liveness` or `readiness`.
    pub(crate) kind: String,
    /// What its attempts amount to: `Success`, `Failure` or `Unknown`.
    pub(crate) outcome: String,
    /// How the last attempt ended: `Success`, `Failure`, `Errored` where it could not be made, or
    /// `Late` where the agent came too late for it to count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// So many attempts in a row ended as the last one that counted did.
    pub(crate) in_a_row: u32,
    /// So many failures in a row count.
    pub(crate) failure_threshold: u32,
    /// When the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) at: Option<Timestamp>,
    /// How long it took.
    pub(crate) latency_millis: u64,
    /// What it said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) output: String,
    /// How often the agent came so late that a failure was not counted.
    #[serde(default)]
    pub(crate) late: u64,
    /// When the next attempt is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Timestamp>,
}
