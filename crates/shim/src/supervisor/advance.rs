//! Containers on the way to their program.

use std::os::fd::OwnedFd;

use super::{container::Init, shim::Shim};
use crate::{
    clock,
    protocol::{Answer, ContainerPhase, Failure, FailureKind},
    runtime::{Ended, Step, host_failure},
};

impl Shim {
    /// Goes as far as the runtime has got with a container.
    pub(super) fn advance_container(&mut self, slot: u32) {
        loop {
            let Some(container) = self.containers.get_mut(&slot) else {
                return;
            };
            let step = container.startup.as_mut().and_then(|one| one.advance());
            match step {
                Some(Step::Process(pid, handle)) => self.met_init(slot, pid, handle),
                Some(Step::Created(terminal, warnings)) => {
                    for warning in warnings {
                        self.warn(Some(warning));
                    }
                    self.created(slot, terminal);
                }
                Some(Step::Started) => self.started(slot),
                Some(Step::Failed(why)) => self.failed(slot, why),
                None => break,
            }
        }
        self.end_early_init(slot);
    }

    fn met_init(&mut self, slot: u32, pid: i32, handle: Option<OwnedFd>) {
        let ended_early = self.children.recall(pid);
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let ended_early = match (&handle, ended_early) {
            (_, Some(ended)) => Some(ended),
            // It is gone and nobody saw how.
            (None, None) => Some(Ended::Exit(255)),
            (Some(_), None) => None,
        };
        container.init = Some(Init {
            pid,
            handle: handle.filter(|_| ended_early.is_none()),
            ended_early,
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
            let failure = host_failure("cannot watch the container's output", error);
            return self.give_up(slot, failure);
        }
        container.phase = ContainerPhase::Created;
        container.created_at_ns = clock::now_ns();
        let pid = container.init.as_ref().map_or(0, |init| init.pid);
        if let Some(to) = container.caller.take() {
            self.reply(to, Ok(Answer::Created { pid }));
        }
    }

    fn started(&mut self, slot: u32) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.end_startup(&self.watch);
        container.phase = ContainerPhase::Running;
        container.started_at_ns = clock::now_ns();
        if let Some(to) = container.caller.take() {
            self.reply(to, Ok(Answer::Done));
        }
    }

    fn failed(&mut self, slot: u32, why: String) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let failure = Failure::new(FailureKind::Runtime, why);
        if container.phase == ContainerPhase::Creating {
            return self.give_up(slot, failure);
        }
        // The init ends, and is reported as any end is.
        container.end_startup(&self.watch);
        if let Some(to) = container.caller.take() {
            self.reply(to, Err(failure));
        }
    }

    /// Forgets a container that could not be made; then whoever wanted it is told why.
    fn give_up(&mut self, slot: u32, failure: Failure) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.end_startup(&self.watch);
        let caller = container.caller.take().map(|to| (to, Err(failure)));
        self.begin_deletion(slot, caller);
    }
}
