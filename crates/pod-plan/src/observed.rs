//! The state of one pod in the runtime, as an inspection found it.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rubelet_api::{probe::Hook, status::ContainerUser};
use rubelet_base::{ContainerId, SandboxId};

/// All sandboxes and containers of a pod, each list newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedPod {
    /// Sandboxes, newest first.
    pub sandboxes: Vec<ObservedSandbox>,
    /// Containers of all sandboxes, newest first.
    pub containers: Vec<ObservedContainer>,
}

/// One pod sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedSandbox {
    /// The runtime's identifier.
    pub id: SandboxId,
    /// `metadata.attempt`.
    pub attempt: u32,
    /// True while the sandbox is READY.
    pub ready: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// True if it uses the node's network namespace.
    pub host_network: bool,
    /// Its addresses, the primary one first; empty for host network.
    pub ips: Vec<Box<str>>,
    /// The definition it was created from; `None` if another kubelet created it.
    pub definition: Option<Box<str>>,
}

/// One container.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedContainer {
    /// The runtime's identifier.
    pub id: ContainerId,
    /// The sandbox it belongs to.
    pub sandbox: SandboxId,
    /// Its name in the pod.
    pub name: Box<str>,
    /// `restartCount` it was created with.
    pub restart_count: u32,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its current state.
    pub phase: ContainerPhase,
    /// The image's name as the runtime resolved it.
    pub image: Box<str>,
    /// The image reference with a digest.
    pub image_ref: Box<str>,
    /// Upstream's hash from the annotation; empty if there is none.
    pub hash: Box<str>,
    /// The definition it was created from; `None` if another kubelet created it.
    pub definition: Option<Box<str>>,
    /// The preStop hook it was created with, from its annotations.
    pub pre_stop: Option<Arc<Hook>>,
    /// The pod's grace period at its creation, from its annotations.
    pub grace: Option<Duration>,
    /// For a precreated container: the previous instance, whose exit the runtime had not reported
    /// yet; from its annotations.
    pub precreated_after: Option<ContainerId>,
    /// User and groups of its first process, if the runtime reports them.
    pub user: Option<Box<ContainerUser>>,
    /// Paths of its mounts that the runtime reports as recursively read-only.
    pub recursive_read_only: Vec<Box<str>>,
    /// The kernel's report on its process.
    pub process: ProcessState,
    /// The exit that the kernel reported while the runtime still reports the container as running.
    /// `None` on Linux before 6.15, which does not report exit codes.
    pub kernel_exit: Option<Box<Exit>>,
}

/// The kernel's report on the process of a container that the runtime reports as running. It never
/// replaces the runtime's report: no step but [`Step::PrecreateContainer`](crate::Step) is based on
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessState {
    /// The kernel reports nothing different.
    #[default]
    AsReported,
    /// The process has exited. The runtime will most likely report the exit soon.
    Gone,
    /// The process exited a while ago, and the runtime seems to have missed the exit.
    Lost,
}

/// State of a container.
#[derive(Debug, Clone, PartialEq)]
pub enum ContainerPhase {
    /// Created, not started.
    Created,
    /// Running.
    Running {
        /// `startedAt`.
        started_at: Timestamp,
    },
    /// Exited. Final: an inspection never reads its status again.
    Exited(Exit),
    /// The runtime does not know the state.
    Unknown,
}

/// The exit of a container.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// Exit code; 128 + signal for signals.
    pub code: i32,
    /// The runtime's reason: `Completed`, `Error`, `OOMKilled`, `StartError`.
    pub reason: Box<str>,
    /// The runtime's message, else the termination message.
    pub message: Box<str>,
    /// When it started; `None` if it never did.
    pub started_at: Option<Timestamp>,
    /// When it exited.
    pub finished_at: Timestamp,
}

impl Exit {
    /// The reason of an exit by the OOM killer, as all runtimes write it.
    pub const OOM_KILLED: &str = "OOMKilled";

    /// True if the exit counts as a failure of an init container.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.code != 0 || &*self.reason == Self::OOM_KILLED
    }

    /// True if the container never ran because the client that started it disconnected before the
    /// call returned. containerd records this like a failed start; only the message differs. A shim
    /// that is being started at that moment is killed.
    #[must_use]
    pub fn start_was_interrupted(&self) -> bool {
        let canceled = self.message.contains("context canceled");
        let killed = self.message.contains("failed to start shim")
            && self.message.contains("signal: killed");
        self.started_at.is_none() && &*self.reason == "StartError" && (canceled || killed)
    }
}

impl ObservedPod {
    /// The newest container of that name, in any sandbox.
    #[must_use]
    pub fn newest(&self, name: &str) -> Option<&ObservedContainer> {
        self.containers
            .iter()
            .find(|container| *container.name == *name)
    }

    /// The newest container of that name in one sandbox.
    #[must_use]
    pub(crate) fn newest_in(&self, sandbox: &SandboxId, name: &str) -> Option<&ObservedContainer> {
        self.containers
            .iter()
            .find(|container| *container.name == *name && container.sandbox == *sandbox)
    }

    /// The exit of the newest container of that name that has exited.
    #[must_use]
    pub(crate) fn newest_exit(&self, name: &str) -> Option<&Exit> {
        let mut found = self.containers.iter();
        found.find_map(|container| container.phase.exit().filter(|_| *container.name == *name))
    }

    /// The two newest containers of that name.
    #[must_use]
    pub(crate) fn newest_two(
        &self,
        name: &str,
    ) -> (Option<&ObservedContainer>, Option<&ObservedContainer>) {
        let mut found = self
            .containers
            .iter()
            .filter(|container| *container.name == *name);
        (found.next(), found.next())
    }

    /// The newest sandbox that is READY.
    #[must_use]
    pub fn ready_sandbox(&self) -> Option<&ObservedSandbox> {
        self.sandboxes.iter().find(|sandbox| sandbox.ready)
    }

    /// True if the pod is stopped: no container that may run and no READY sandbox.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        !self.sandboxes.iter().any(|sandbox| sandbox.ready)
            && !self
                .containers
                .iter()
                .any(|container| container.phase.may_run())
    }

    /// True if the runtime holds no record of the pod.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.sandboxes.is_empty() && self.containers.is_empty()
    }

    /// Sorts both lists newest first; ties by identifier, so that equal input gives equal output.
    ///
    /// Sandboxes are ordered by attempt, because each one gets a higher attempt than all before it.
    /// Times may be wrong: the clock may be set back, and containerd sets no creation time for a
    /// sandbox whose start failed and that it could not clean up.
    pub fn sort(&mut self) {
        self.sandboxes.sort_by(|a, b| {
            (b.attempt, b.created_at, &b.id).cmp(&(a.attempt, a.created_at, &a.id))
        });
        self.containers.sort_by(|a, b| {
            (b.created_at, b.restart_count, &b.id).cmp(&(a.created_at, a.restart_count, &a.id))
        });
    }
}

impl ContainerPhase {
    /// True for Running and Unknown: a process may exist.
    #[must_use]
    pub fn may_run(&self) -> bool {
        matches!(self, Self::Running { .. } | Self::Unknown)
    }

    /// The exit, if the container has exited.
    #[must_use]
    pub fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            _ => None,
        }
    }

    /// The exit, to change what is told of it.
    pub fn exit_mut(&mut self) -> Option<&mut Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            _ => None,
        }
    }
}
