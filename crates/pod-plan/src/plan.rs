//! The plan of one pod: what to do, what to say, when to look again, and why.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{
    container::Container,
    pod::Pod,
    probe::Hook,
    status::{ContainerStatus, PodStatus},
};
use rubelet_base::{ContainerId, SandboxId};

use crate::{
    actions, ahead, broken_off,
    history::History,
    intents::Intents,
    observed::{ObservedContainer, ObservedPod},
    probe::{self, Outcome, ProbeKind, ProbeOutcomes, ProbeTarget},
    status,
    why::{KillCause, StartCause, Why},
};

/// Type of the condition that is true while all containers are being restarted in place.
pub(crate) const ALL_RESTARTING: &str = "AllContainersRestarting";

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
    /// What probes say.
    pub probes: &'a ProbeOutcomes,
    /// What an operator asked for.
    pub intents: &'a Intents,
    /// Which version of the specification this is; 0 if unknown.
    pub generation: i64,
}

impl<'a> PodSnapshot<'a> {
    /// The status published last of one container.
    #[must_use]
    pub fn published(&self, name: &str) -> Option<&'a ContainerStatus> {
        self.previous.and_then(|status| status.container(name))
    }

    /// What a probe says of an instance; what was published of the same instance where the probe
    /// was not tried since the agent started.
    #[must_use]
    pub fn probe_outcome(&self, found: &ObservedContainer, kind: ProbeKind) -> Option<Outcome> {
        self.probes.get(&found.id, kind).or_else(|| {
            let old = self.published(&found.name)?;
            let same = *old.container_id == *found.id.as_str();
            let success = match kind {
                ProbeKind::Startup => old.started,
                ProbeKind::Readiness => old.ready,
                ProbeKind::Liveness => false,
            };
            (same && success).then_some(Outcome::Success)
        })
    }

    /// True if all containers were being restarted in place when the last status was published.
    #[must_use]
    pub fn was_restarting_all(&self) -> bool {
        let old = self.previous.and_then(|old| old.condition(ALL_RESTARTING));
        old.is_some_and(|condition| condition.status.is_true())
    }

    /// True if a running container counts as started: its postStart hook has run and its startup
    /// probe, if there is one, has succeeded.
    #[must_use]
    pub fn started(&self, container: &Container, found: &ObservedContainer) -> bool {
        !self.history.owes_post_start(&container.name, &found.id)
            && (container.startup.is_none()
                || self.probe_outcome(found, ProbeKind::Startup) == Some(Outcome::Success))
    }
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
    /// The probes that are to be tried from now on.
    pub probes: Vec<ProbeTarget>,
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
        /// Why it starts.
        cause: StartCause,
        /// The container that was made ahead for this: it is started, and none is made.
        made: Option<ContainerId>,
    },
    /// Make the next instance of a container whose process is gone, before the runtime tells its
    /// end; without a pull, and without starting it. Nothing is lost if that fails.
    MakeAhead {
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
    /// Stop containers at the same time, each with its grace; those that have a turn wait for it.
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
    /// Unmount and remove the volumes of a pod that has ended; its folder and logs stay.
    RemoveVolumes,
    /// Remove volumes, folders, logs, cgroup and records of the pod.
    CleanUp,
}

impl Step {
    fn makes_something(&self) -> bool {
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
    /// Time until SIGKILL, the preStop hook and the wait for its turn included.
    pub grace: Duration,
    /// What the event says.
    pub message: Box<str>,
    /// Why.
    pub cause: KillCause,
    /// What runs before SIGTERM.
    pub pre_stop: Option<Arc<Hook>>,
    /// When its turn is.
    pub turn: Turn,
}

/// The order in which the containers of a pod that ends get SIGTERM (KEP-753).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// At once, and nobody waits for it: init and ephemeral containers, and single containers that
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

/// Compares what is wanted with what was seen.
#[must_use]
pub fn plan(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodPlan {
    ahead::plan(snapshot, now, plan_the_rest)
}

/// The plan for a pod without containers that were made ahead.
fn plan_the_rest(snapshot: &PodSnapshot<'_>, now: Timestamp) -> PodPlan {
    if let Some(plan) = broken_off::plan(snapshot, now) {
        return plan;
    }
    let mut actions = actions::decide(snapshot, now);
    let status = status::generate(snapshot, &actions, now);
    let ended = snapshot.target == Target::Run && status.phase.is_terminal();
    if ended && actions.steps.iter().any(Step::makes_something) {
        // What was found ends the pod, though no record is left that would have kept it from
        // starting again.
        let over = PodSnapshot {
            previous: Some(&status),
            ..*snapshot
        };
        actions = actions::decide(&over, now);
    }
    if ended {
        actions::remove_volumes(snapshot, &mut actions, now);
    }
    PodPlan {
        probes: probe::targets(snapshot, status.phase),
        steps: actions.steps,
        status,
        wake_at: actions.wake_at,
        why: actions.why,
        finished: actions.finished,
    }
}
