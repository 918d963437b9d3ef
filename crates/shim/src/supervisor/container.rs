//! The shim's state of a container and its processes.

use std::{collections::BTreeMap, os::fd::OwnedFd};

use rubelet_oci::{NamespaceKind, Spec};

use super::{
    connection::ReplyTo, container_state::ContainerState, input::Input, output::Output,
    watch::EpollSet,
};
use crate::{
    protocol::{self, CallFailure, CreateContainer, FailureKind},
    runtime::{OciRuntime, ProcessExit, Startup},
};

/// A container.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) what: CreateContainer,
    pub(super) runtime: Box<dyn OciRuntime>,
    pub(super) state: ContainerState,
    /// Its PID namespace is its own: the kernel kills all its processes with its init.
    pub(super) owns_pid_namespace: bool,
    pub(super) output: Output,
    pub(super) input: Input,
    /// The PID namespace of the target container. Kept open as long as the container, because its
    /// bundle has a link to the descriptor.
    #[expect(dead_code, reason = "it is used by its descriptor number")]
    pub(super) target: Option<OwnedFd>,
    pub(super) execs: BTreeMap<u32, Exec>,
    /// Running `kill` programs, with the pending requests.
    pub(super) kills: Vec<(i32, ReplyTo)>,
    pub(super) deletion: Option<Deletion>,
}

/// An exec in a container.
#[derive(Debug)]
pub(super) struct Exec {
    pub(super) exec_id: String,
    pub(super) startup: Option<Box<dyn Startup>>,
    pub(super) caller: Option<ReplyTo>,
    pub(super) pid: i32,
    pub(super) handle: Option<OwnedFd>,
    /// Its terminal, until it is passed to the agent.
    pub(super) console: Option<OwnedFd>,
    pub(super) ended_early: Option<ProcessExit>,
}

/// A deletion in progress.
#[derive(Debug)]
pub(super) struct Deletion {
    /// The pending requests and their results.
    pub(super) callers: Vec<(ReplyTo, Result<(), CallFailure>)>,
    pub(super) step: DeletionStep,
}

/// The progress of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeletionStep {
    /// The runtime's deletion waits for its program that creates or starts the container.
    Waiting,
    /// The runtime's `delete` program runs, with this PID.
    Helper(i32),
    /// The runtime has deleted what it could. The exit of the init ends the deletion.
    Done,
}

impl Container {
    /// Drops the state of the start.
    pub(super) fn end_startup(&mut self, watch: &EpollSet) {
        if let Some(startup) = self.state.take_startup() {
            forget(&*startup, watch);
        }
    }

    /// Whether its init may still run.
    pub(super) fn is_alive(&self) -> bool {
        self.state.alive_init().is_some()
    }

    /// Whether a program of an external runtime is running that may report a process.
    pub(super) fn has_helper(&self) -> bool {
        let mut execs = self.execs.values().flat_map(|exec| &exec.startup);
        self.state.helper().is_some() || execs.any(|startup| startup.helper().is_some())
    }

    /// The error of a call that is not possible in its state.
    pub(super) fn wrong_state(&self, what: &str) -> CallFailure {
        let state = match &self.state {
            _ if self.deletion.is_some() => "is being deleted",
            ContainerState::Creating { .. } => "is still being created",
            ContainerState::Created { .. } => "is created but not running",
            ContainerState::Running { .. } => "is running",
            ContainerState::Aborted { .. } | ContainerState::Exited { .. } => "has exited",
        };
        let id = &self.what.id;
        let text = format!("the container {id} {state} and cannot be {what}");
        CallFailure::new(FailureKind::WrongState, text)
    }

    /// What agents are told about it.
    pub(super) fn report(&self) -> protocol::ContainerState {
        let (created_at_ns, started_at_ns) = self.state.times_ns();
        protocol::ContainerState {
            id: self.what.id.clone(),
            phase: self.state.phase(),
            cgroup: Some(self.what.cgroup.clone()),
            pid: self.state.pid(),
            created_at_ns,
            started_at_ns,
            exit: self.state.exit().cloned(),
            execs: self
                .execs
                .values()
                .map(|exec| (exec.exec_id.clone(), exec.pid))
                .collect(),
            log: self.output.log.state().clone(),
        }
    }
}

impl Exec {
    /// Drops the state of the start.
    pub(super) fn end_startup(&mut self, watch: &EpollSet) {
        if let Some(startup) = self.startup.take() {
            forget(&*startup, watch);
        }
    }
}

fn forget(startup: &dyn Startup, watch: &EpollSet) {
    if let Some(reports) = startup.watch() {
        watch.remove(reports);
    }
}

/// Reports whether the container has a PID namespace of its own: then the kernel kills all its
/// processes when its init exits.
pub(super) fn owns_pid_namespace(spec: &Spec) -> bool {
    spec.linux
        .namespace(NamespaceKind::Pid)
        .is_some_and(|pids| pids.path.is_none())
}
