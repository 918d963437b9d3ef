//! The plan of one pod: what to do, what to say, when to look again, and why.

use std::time::Duration;

use jiff::Timestamp;
use rubelet_api::{pod::Pod, status::PodStatus};
use rubelet_base::{ContainerId, SandboxId};

use crate::{actions, broken_off, history::History, observed::ObservedPod, status, why::Why};

/// Everything a plan is made from.
#[derive(Debug, Clone, Copy)]
pub struct PodSnapshot<'a> {
    /// The pod as a source wants it.
    pub pod: &'a Pod,
    /// What the last inspection saw. It began after this agent's last step ended.
    pub observed: &'a ObservedPod,
    /// What was tried.
    pub history: &'a History,
    /// The status published last.
    pub previous: Option<&'a PodStatus>,
    /// Whether the pod is to run or to end.
    pub target: Target,
    /// What the node's configuration sets.
    pub settings: &'a PlanSettings,
}

/// What a pod is meant to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A source wants it.
    Run,
    /// No source wants it: stop it with this grace and remove it.
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
    /// True when nothing is left of a pod that was to be removed.
    pub finished: bool,
}

/// One action on the host or the runtime. All are safe to repeat.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make folders, cgroup and volumes, then a sandbox with this attempt number.
    CreateSandbox {
        /// `metadata.attempt`.
        attempt: u32,
    },
    /// Pull the image if the policy says so, create a container and start it.
    StartContainer {
        /// Its name in the pod.
        name: Box<str>,
        /// The sandbox it goes into.
        sandbox: SandboxId,
        /// `restartCount`; `None` where the runtime has no record of an earlier instance, so that
        /// the log folder has to tell.
        restart_count: Option<u32>,
        /// When the instance before it ended, if it ended: the start of its crash back-off.
        after_exit: Option<Timestamp>,
    },
    /// Start a container that was created but not started.
    StartCreated {
        /// Its name in the pod.
        name: Box<str>,
        /// The runtime's identifier.
        id: ContainerId,
    },
    /// Stop containers at the same time, each with its grace.
    KillContainers(Vec<Kill>),
    /// Stop sandboxes: their processes end and their addresses are released.
    StopSandboxes(Vec<SandboxId>),
    /// Remove records of dead containers, with their logs.
    RemoveContainers(Vec<DeadContainer>),
    /// Remove stopped sandboxes.
    RemoveSandboxes(Vec<SandboxId>),
    /// Remove volumes, folders, logs, cgroup and records of the pod.
    CleanUp,
}

/// A container to stop.
#[derive(Debug, Clone, PartialEq)]
pub struct Kill {
    /// Its name in the pod.
    pub name: Box<str>,
    /// The runtime's identifier.
    pub id: ContainerId,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// What the event says.
    pub message: Box<str>,
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
}

/// Compares what is wanted with what was seen.
#[must_use]
pub fn plan(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodPlan {
    if let Some(plan) = broken_off::plan(snapshot, now) {
        return plan;
    }
    let actions = actions::decide(snapshot, now);
    let status = status::generate(snapshot, &actions, now);
    PodPlan {
        steps: actions.steps,
        status,
        wake_at: actions.wake_at,
        why: actions.why,
        finished: actions.finished,
    }
}
