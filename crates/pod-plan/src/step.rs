//! The contents of a plan: steps, a status, and when to plan again.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{probe::Hook, status::PodStatus};
use rubelet_base::{ContainerId, SandboxId};

use crate::{
    probe::ProbeTarget,
    reason::{KillCause, PlanReason, StartCause},
};

/// The next steps for one pod, and its status.
#[derive(Debug, Clone, PartialEq)]
pub struct PodPlan {
    /// Steps in order. An executor makes no choices: it applies them and reports each outcome.
    pub steps: Vec<Step>,
    /// The status to publish now.
    pub status: PodStatus,
    /// The time of the next plan if nothing changes.
    pub wake_at: Option<Timestamp>,
    /// The reasons for the steps, and for those left out.
    pub why: Vec<PlanReason>,
    /// True once nothing is left of a pod that is being removed.
    pub finished: bool,
    /// The probes to be tried from now on.
    pub probes: Vec<ProbeTarget>,
}

/// One action on the host or the runtime. All are safe to repeat.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Create directories, cgroup and volumes, then a sandbox with this attempt number.
    CreateSandbox {
        /// `metadata.attempt`.
        attempt: u32,
    },
    /// Pull the image if the policy requires it, create a container and start it.
    StartContainer {
        /// Its name in the pod.
        name: Box<str>,
        /// The sandbox it goes into.
        sandbox: SandboxId,
        /// `restartCount`; `None` if the runtime has no record of an earlier instance. The log
        /// directory then determines it.
        restart_count: Option<u32>,
        /// When the previous instance exited, if it did: the crash back-off counts from then.
        after_exit: Option<Timestamp>,
        /// The reason for the start.
        cause: StartCause,
        /// The precreated container, which is started instead of creating one.
        precreated: Option<ContainerId>,
    },
    /// Create the next instance of a container whose process has exited, before the runtime reports
    /// the exit; without a pull, and without starting it. A failure has no consequences.
    PrecreateContainer {
        /// Its name in the pod.
        name: Box<str>,
        /// The sandbox it goes into.
        sandbox: SandboxId,
        /// `restartCount`.
        restart_count: u32,
        /// The instance to replace.
        before: ContainerId,
    },
    /// Start a container that was created but not started.
    StartCreated {
        /// Its name in the pod.
        name: Box<str>,
        /// The runtime's identifier.
        id: ContainerId,
    },
    /// Run the postStart hook of a container that an earlier process of the agent started without
    /// completing the hook.
    PostStart {
        /// Its name in the pod.
        name: Box<str>,
        /// The runtime's identifier.
        id: ContainerId,
    },
    /// Stop containers concurrently, each with its grace period and in [`KillOrder`].
    KillContainers(Vec<Kill>),
    /// Stop sandboxes: their processes are killed and their addresses are released.
    StopSandboxes(Vec<SandboxId>),
    /// Count a restart of all containers in the crash back-off of the container that caused it.
    NoteRestart {
        /// The container that caused it.
        name: Box<str>,
        /// When that container exited.
        after_exit: Timestamp,
    },
    /// Remove records of dead containers, with their logs.
    RemoveContainers(Vec<DeadContainer>),
    /// Remove stopped sandboxes.
    RemoveSandboxes(Vec<SandboxId>),
    /// Unmount and remove the volumes of a terminated pod; its directory and logs stay.
    RemoveVolumes,
    /// Remove volumes, directories, logs, cgroup and records of the pod.
    CleanUp,
}

impl Step {
    pub(crate) fn creates_something(&self) -> bool {
        matches!(
            self,
            Self::CreateSandbox { .. } | Self::StartContainer { .. } | Self::StartCreated { .. }
        )
    }
}

/// A container to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Kill {
    /// Its name in the pod.
    pub name: Box<str>,
    /// The runtime's identifier.
    pub id: ContainerId,
    /// Time until SIGKILL, including the preStop hook and the wait for other containers.
    pub grace: Duration,
    /// The message of the event.
    pub message: Box<str>,
    /// The reason for the kill.
    pub cause: KillCause,
    /// The preStop hook, which runs before SIGTERM.
    pub pre_stop: Option<Arc<Hook>>,
    /// The position of its SIGTERM among the containers that are stopped with it.
    pub order: KillOrder,
}

/// The order in which the containers of a terminating pod get SIGTERM (KEP-753).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOrder {
    /// At once, and no other container waits for it: init and ephemeral containers, and single
    /// containers that are replaced.
    Free,
    /// At once, and the sidecars wait for it.
    Regular,
    /// After all regular containers, and all sidecars with a larger number, have exited. The number
    /// is the index in `initContainers`.
    Sidecar(usize),
}

/// A dead container to remove.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadContainer {
    /// Its name in the pod.
    pub name: Box<str>,
    /// The runtime's identifier.
    pub id: ContainerId,
    /// The number of its log file.
    pub restart_count: u32,
    /// True if its log is kept.
    pub keep_log: bool,
}
