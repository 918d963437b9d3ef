//! The shim's state of a container and its processes.

use std::{collections::BTreeMap, os::fd::OwnedFd};

use rubelet_oci::{NamespaceKind, Spec};

use super::{input::Input, output::Output, watch::EpollSet};
use crate::{
    ExitRecord,
    protocol::{CallFailure, ContainerPhase, ContainerState, CreateContainer},
    runtime::{OciRuntime, ProcessExit, Startup},
};

/// The request that a reply is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyTo {
    pub(super) connection: u32,
    pub(super) id: u64,
}

/// A container.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) what: CreateContainer,
    pub(super) runtime: Box<dyn OciRuntime>,
    pub(super) phase: ContainerPhase,
    /// The start in progress.
    pub(super) startup: Option<Box<dyn Startup>>,
    /// The pending `Create` or `Start` request.
    pub(super) caller: Option<ReplyTo>,
    pub(super) init: Option<Init>,
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
    pub(super) created_at_ns: u64,
    pub(super) started_at_ns: u64,
    pub(super) exit: Option<ExitRecord>,
    /// The exit record is written.
    pub(super) recorded: bool,
}

/// The init of a container.
#[derive(Debug)]
pub(super) struct Init {
    pub(super) pid: i32,
    /// `None` after it was reaped.
    pub(super) handle: Option<OwnedFd>,
    /// It exited before the external runtime reported it.
    pub(super) ended_early: Option<ProcessExit>,
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
    /// The runtime's deletion has begun.
    pub(super) begun: bool,
    /// The running `delete` program.
    pub(super) helper: Option<i32>,
}

impl Container {
    /// Drops the state of the start.
    pub(super) fn end_startup(&mut self, watch: &EpollSet) {
        if let Some(startup) = self.startup.take() {
            forget(&*startup, watch);
        }
    }

    /// Whether its init may still run.
    pub(super) fn is_alive(&self) -> bool {
        self.init.as_ref().is_some_and(|init| init.handle.is_some())
    }

    /// Whether a program of an external runtime is running that may report a process.
    pub(super) fn has_helper(&self) -> bool {
        let startups = self.execs.values().map(|exec| &exec.startup);
        startups
            .chain([&self.startup])
            .flatten()
            .any(|startup| startup.helper().is_some())
    }

    /// The state for the agent.
    pub(super) fn state(&self) -> ContainerState {
        ContainerState {
            id: self.what.id.clone(),
            phase: self.phase,
            cgroup: Some(self.what.cgroup.clone()),
            pid: self.init.as_ref().map_or(0, |init| init.pid),
            created_at_ns: self.created_at_ns,
            started_at_ns: self.started_at_ns,
            exit: self.exit.clone(),
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
