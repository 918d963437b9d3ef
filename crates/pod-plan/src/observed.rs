//! What an inspection saw of one pod in the runtime.

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
    /// The definition it was made from; `None` if another kubelet made it.
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
    /// What it does now.
    pub phase: ContainerPhase,
    /// The image's name as the runtime resolved it.
    pub image: Box<str>,
    /// The image reference with a digest.
    pub image_ref: Box<str>,
    /// Upstream's hash from the annotation; empty if there is none.
    pub hash: Box<str>,
    /// The definition it was made from; `None` if another kubelet made it.
    pub definition: Option<Box<str>>,
    /// The preStop hook it was made with, from its annotations.
    pub pre_stop: Option<Arc<Hook>>,
    /// The pod's grace period when it was made, from its annotations.
    pub grace: Option<Duration>,
    /// The instance that this one was created to follow, before the exit of that one was reported;
    /// from its annotations.
    pub ahead_of: Option<ContainerId>,
    /// As whom its first process was started, as far as the runtime reports it.
    pub user: Option<Box<ContainerUser>>,
    /// Paths of its mounts that the runtime reports as recursively read-only.
    pub recursive_read_only: Vec<Box<str>>,
    /// The kernel's report on its process.
    pub process: ProcessState,
    /// The exit of its process by the kernel's report, while the runtime reports it as running.
    /// `None` where the kernel does not report exit codes: Linux before 6.15.
    pub kernel_exit: Option<Box<Exit>>,
}

/// The kernel's report on the process of a container that the runtime reports as running. It never
/// replaces the runtime's report: no step but [`Step::PrecreateContainer`](crate::Step) is based on
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessState {
    /// The same as the runtime's.
    #[default]
    AsReported,
    /// It is gone. The runtime will most likely report that soon.
    Gone,
    /// It exited a while ago, and the runtime seems to have lost its exit.
    Lost,
}

/// State of a container.
#[derive(Debug, Clone, PartialEq)]
pub enum ContainerPhase {
    /// Made, not started.
    Created,
    /// Running since then.
    Running {
        /// `startedAt`.
        started_at: Timestamp,
    },
    /// Ended. Final: an inspection never reads it again.
    Exited(Exit),
    /// The runtime does not know.
    Unknown,
}

/// How a container ended.
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
    /// When it ended.
    pub finished_at: Timestamp,
}

impl Exit {
    /// True if the exit counts as a failure of an init container.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.code != 0 || &*self.reason == "OOMKilled"
    }

    /// True if the container never ran because the caller that started it went away before the
    /// answer. containerd records that like a failed start; only its message tells them apart. A shim
    /// that is just being started is killed then.
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
    pub fn newest_in(&self, sandbox: &SandboxId, name: &str) -> Option<&ObservedContainer> {
        self.containers
            .iter()
            .find(|container| *container.name == *name && container.sandbox == *sandbox)
    }

    /// The newest container of that name that has ended.
    #[must_use]
    pub fn newest_exit(&self, name: &str) -> Option<&Exit> {
        let mut found = self.containers.iter();
        found.find_map(|container| container.phase.exit().filter(|_| *container.name == *name))
    }

    /// The two newest containers of that name.
    #[must_use]
    pub fn newest_two(
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

    /// True if nothing of the pod runs: no container that may run and no READY sandbox.
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
    /// The attempt shows which sandbox is newer, because each gets a higher one than all before.
    /// Times may be wrong: the clock may be set back, and containerd gives none to a sandbox whose
    /// start failed and that it could not clean up.
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
    /// True for Running and Unknown: a process may be there.
    #[must_use]
    pub fn may_run(&self) -> bool {
        matches!(self, Self::Running { .. } | Self::Unknown)
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            _ => None,
        }
    }
}
