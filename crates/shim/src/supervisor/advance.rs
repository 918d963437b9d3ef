//! Progress of containers that are being started.

use std::os::fd::OwnedFd;

use super::{
    container_state::{ContainerState, Init},
    shim::Shim,
};
use crate::{
    clock,
    protocol::{CallFailure, FailureKind, ShimReply},
    runtime::{ProcessExit, StartupStep, host_failure},
};

impl Shim {
    /// Handles the steps that the runtime has made with a container.
    pub(super) fn advance_container(&mut self, slot: u32) {
        loop {
            let Some(container) = self.containers.get_mut(&slot) else {
                return;
            };
            let step = container.state.startup_mut().and_then(|one| one.advance());
            match step {
                Some(StartupStep::Process(pid, handle)) => self.on_init_pid(slot, pid, handle),
                Some(StartupStep::Created(terminal, warnings)) => {
                    for warning in warnings {
                        self.warn(Some(warning));
                    }
                    self.created(slot, terminal);
                }
                Some(StartupStep::Started) => self.started(slot),
                Some(StartupStep::Failed(why)) => self.failed(slot, why),
                None => break,
            }
        }
        self.end_early_init(slot);
    }

    fn on_init_pid(&mut self, slot: u32, pid: i32, handle: Option<OwnedFd>) {
        let ended_early = self.children.recall(pid);
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.state.on_init(match (handle, ended_early) {
            (Some(handle), None) => Init::Alive { pid, handle },
            (_, Some(exit)) => Init::Ended { pid, exit },
            // It exited, and the exit status is lost.
            (None, None) => Init::Ended {
                pid,
                exit: ProcessExit::Exit(255),
            },
        });
    }

    fn created(&mut self, slot: u32, terminal: Option<OwnedFd>) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let longest = container.what.max_log_line;
        let mut taken = Ok(());
        if let Some(terminal) = terminal {
            taken = terminal.try_clone().and_then(|input| {
                container.input.open(input, false)?;
                container.output.take_terminal(terminal, longest)
            });
        }
        let taken = taken.and_then(|()| container.output.watch(&self.watch, slot));
        if let Err(error) = taken {
            let failure = host_failure("cannot watch the output of the container", error);
            return self.give_up(slot, failure);
        }
        let Some((pid, caller)) = container.state.on_created(clock::now_ns()) else {
            let text = "the runtime created the container without a process";
            return self.give_up(slot, CallFailure::new(FailureKind::Runtime, text));
        };
        if let Some(to) = caller {
            self.reply(to, Ok(ShimReply::Created { pid }));
        }
    }

    fn started(&mut self, slot: u32) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.end_startup(&self.watch);
        if let Some(to) = container.state.on_started(clock::now_ns()) {
            self.reply(to, Ok(ShimReply::Done));
        }
    }

    fn failed(&mut self, slot: u32, why: String) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let failure = CallFailure::new(FailureKind::Runtime, why);
        if matches!(container.state, ContainerState::Creating { .. }) {
            return self.give_up(slot, failure);
        }
        // The init exits, which is handled as any exit.
        container.end_startup(&self.watch);
        if let Some(to) = container.state.take_caller() {
            self.reply(to, Err(failure));
        }
    }

    /// Deletes a container that could not be created, then replies with the failure.
    fn give_up(&mut self, slot: u32, failure: CallFailure) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.end_startup(&self.watch);
        let caller = container.state.take_caller();
        let caller = caller.map(|to| (to, Err(failure)));
        self.begin_deletion(slot, caller);
    }
}
