//! What the shim keeps of a container and of the processes in it.

use std::{collections::BTreeMap, os::fd::OwnedFd};

use rubelet_oci::{NamespaceKind, Spec};

use super::{input::Input, output::Output, watch::Watch};
use crate::{
    ExitRecord,
    protocol::{ContainerPhase, ContainerState, CreateContainer, Failure},
    runtime::{Ended, OciRuntime, Startup},
};

/// Whom a reply goes to.
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
    /// On the way to its program.
    pub(super) startup: Option<Box<dyn Startup>>,
    /// Who waits for `Create` or `Start`.
    pub(super) caller: Option<ReplyTo>,
    pub(super) init: Option<Init>,
    /// Whether all its processes end with its init.
    pub(super) ends_as_one: bool,
    pub(super) output: Output,
    pub(super) input: Input,
    /// The PID namespace of the container whose processes it sees. Held as long as the container:
    /// its bundle has a link to the descriptor.
    #[expect(dead_code, reason = "it is used by its number")]
    pub(super) target: Option<OwnedFd>,
    pub(super) execs: BTreeMap<u32, Exec>,
    /// Programs that send a signal, and who waits for them.
    pub(super) kills: Vec<(i32, ReplyTo)>,
    pub(super) deletion: Option<Deletion>,
    pub(super) created_at_ns: u64,
    pub(super) started_at_ns: u64,
    pub(super) exit: Option<ExitRecord>,
    /// Whether the exit is safe on disk.
    pub(super) recorded: bool,
}

/// The init of a container.
#[derive(Debug)]
pub(super) struct Init {
    pub(super) pid: i32,
    /// `None` when it was reaped.
    pub(super) handle: Option<OwnedFd>,
    /// It ended before the program that brings it up said that it had brought it up.
    pub(super) ended_early: Option<Ended>,
}

/// One more process in a container.
#[derive(Debug)]
pub(super) struct Exec {
    pub(super) exec_id: String,
    pub(super) startup: Option<Box<dyn Startup>>,
    pub(super) caller: Option<ReplyTo>,
    pub(super) pid: i32,
    pub(super) handle: Option<OwnedFd>,
    /// Its terminal, until it is handed over.
    pub(super) console: Option<OwnedFd>,
    pub(super) ended_early: Option<Ended>,
}

/// A container that is being forgotten.
#[derive(Debug)]
pub(super) struct Deletion {
    /// Who waits for it, and what they are told.
    pub(super) callers: Vec<(ReplyTo, Result<(), Failure>)>,
    /// Whether the runtime was told.
    pub(super) begun: bool,
    /// The program that deletes.
    pub(super) helper: Option<i32>,
}

impl Container {
    /// Forgets how it is brought up: that is over.
    pub(super) fn end_startup(&mut self, watch: &Watch) {
        if let Some(startup) = self.startup.take() {
            forget(&*startup, watch);
        }
    }

    /// Whether its init may still run.
    pub(super) fn is_alive(&self) -> bool {
        self.init.as_ref().is_some_and(|init| init.handle.is_some())
    }

    /// Whether a program of an external runtime is at work that may tell of a process.
    pub(super) fn has_helper(&self) -> bool {
        let startups = self.execs.values().map(|exec| &exec.startup);
        startups
            .chain([&self.startup])
            .flatten()
            .any(|startup| startup.helper().is_some())
    }

    /// What an agent is told.
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
    /// Forgets how it is brought up: that is over.
    pub(super) fn end_startup(&mut self, watch: &Watch) {
        if let Some(startup) = self.startup.take() {
            forget(&*startup, watch);
        }
    }
}

fn forget(startup: &dyn Startup, watch: &Watch) {
    if let Some(reports) = startup.watch() {
        watch.remove(reports);
    }
}

/// Whether the kernel ends all processes of a container when its init ends.
pub(super) fn ends_as_one(spec: &Spec) -> bool {
    spec.linux
        .namespace(NamespaceKind::Pid)
        .is_some_and(|pids| pids.path.is_none())
}
