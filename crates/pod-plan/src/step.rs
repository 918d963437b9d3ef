//! The contents of a plan: steps, a status, and when to plan again.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{probe::Hook, status::PodStatus};
use rubelet_base::{ContainerId, SandboxId};

use crate::{
    probe::ProbeTarget,
    why::{KillCause, StartCause, Why},
};

/// What to do next for one pod.
#[derive(Debug, Clone, PartialEq)]
pub struct PodPlan {
    /// Steps in order. An executor makes no choices: it applies them and reports each outcome.
    pub steps: Vec<Step>,
    /// The status to publish now.
    pub status: PodStatus,
    /// When to plan again even if nothing changes.
    pub wake_at: Option<Timestamp>,
    /// Why the steps are these, and why not others.
    pub why: Vec<Why>,
    /// True when nothing is left of a pod that had to be removed.
    pub finished: bool,
    /// The probes to be tried from now on.
    pub probes: Vec<ProbeTarget>,
}

/// One action on the host or the runtime. All are safe to repeat.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make directories, cgroup and volumes, then a sandbox with this attempt number.
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
        /// `restartCount`; `None` where the runtime has no record of an earlier instance, so that
        /// the log directory has to show it.
        restart_count: Option<u32>,
        /// When the instance before it ended, if it ended: the start of its crash back-off.
        after_exit: Option<Timestamp>,
        /// Why it starts.
        cause: StartCause,
        /// The precreated container: it is started, and none is created.
        made: Option<ContainerId>,
    },
    /// Create the next instance of a container whose process is gone, before the runtime reports
    /// its exit; without a pull, and without starting it. Nothing is lost if that fails.
    PrecreateContainer {
        /// Its name in the pod.
        name: Box<str>,
        /// The sandbox it goes into.
        sandbox: SandboxId,
        /// `restartCount`.
        restart_count: u32,
        /// The instance that it follows.
        before: ContainerId,
    },
    /// Start a container that was created but not started.
    StartCreated {
        /// Its name in the pod.
        name: Box<str>,
        /// The runtime's identifier.
        id: ContainerId,
    },
    /// Run the postStart hook of a container that was started by an agent which did not live to run
    /// it.
    PostStart {
        /// Its name in the pod.
        name: Box<str>,
        /// The runtime's identifier.
        id: ContainerId,
    },
    /// Stop containers at the same time, each with its grace; ordered ones wait for the others.
    KillContainers(Vec<Kill>),
    /// Stop sandboxes: their processes end and their addresses are released.
    StopSandboxes(Vec<SandboxId>),
    /// Count a restart of all containers in the crash back-off of the one that caused it.
    NoteRestart {
        /// The container that caused it.
        name: Box<str>,
        /// When that one ended.
        after_exit: Timestamp,
    },
    /// Remove records of dead containers, with their logs.
    RemoveContainers(Vec<DeadContainer>),
    /// Remove stopped sandboxes.
    RemoveSandboxes(Vec<SandboxId>),
    /// Unmount and remove the volumes of a pod that has ended; its directory and logs stay.
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
    /// Time until SIGKILL, the preStop hook and the wait for other containers included.
    pub grace: Duration,
    /// The message of the event.
    pub message: Box<str>,
    /// Why.
    pub cause: KillCause,
    /// What runs before SIGTERM.
    pub pre_stop: Option<Arc<Hook>>,
    /// When it gets SIGTERM among the containers that are stopped with it.
    pub order: KillOrder,
}

/// The order in which the containers of a pod that ends get SIGTERM (KEP-753).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOrder {
    /// At once, and nothing waits for it: init and ephemeral containers, and single containers that
    /// are replaced.
    Free,
    /// At once, and the sidecars wait for it.
    Regular,
    /// After all regular containers and all sidecars with a larger number have ended: the place
    /// among the init containers.
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
    /// True if its log stays.
    pub keep_log: bool,
}
