//! Deletes containers, and shuts the shim down.

use std::os::fd::AsFd as _;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{
    connection::ReplyTo,
    container::{Deletion, DeletionStep},
    output::OutputContext,
    shim::Shim,
};
use crate::{
    clock,
    protocol::{CallFailure, ContainerPhase, Event, FailureKind, ShimReply},
    runtime::{ProcessExit, Progress, send_signal},
};

impl Shim {
    /// Deletes a container; succeeds if it does not exist.
    pub(super) fn delete(&mut self, to: ReplyTo, id: &str) {
        match self.find(id) {
            Some(slot) => self.begin_deletion(slot, Some((to, Ok(())))),
            None => self.reply(to, Ok(ShimReply::Done)),
        }
    }

    /// Deletes all containers; the shim exits afterwards.
    pub(super) fn shut_down(&mut self, to: ReplyTo) {
        self.pending_shutdown = Some(to);
        let slots: Vec<u32> = self.containers.keys().copied().collect();
        for slot in slots {
            self.begin_deletion(slot, None);
        }
        self.finish_shutdown();
    }

    /// Kills the processes of a container and deletes it when they have exited. Then `caller` gets
    /// its result.
    pub(super) fn begin_deletion(
        &mut self,
        slot: u32,
        caller: Option<(ReplyTo, Result<(), CallFailure>)>,
    ) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let mut callers: Vec<_> = caller.into_iter().collect();
        if let Some(waiting) = container.state.take_caller() {
            let text = "the container was deleted concurrently";
            callers.push((
                waiting,
                Err(CallFailure::new(FailureKind::WrongState, text)),
            ));
        }
        if let Some(deletion) = &mut container.deletion {
            deletion.callers.extend(callers);
            return self.continue_deletion(slot);
        }
        container.deletion = Some(Deletion {
            callers,
            step: DeletionStep::Waiting,
        });
        // Kill a runtime program that may hang; the deletion continues after its exit.
        let helper = container.state.helper();
        // It is a child that was not reaped, so the PID is still its own.
        if let Some(handle) = helper
            .and_then(Pid::from_raw)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        {
            let _ = send_signal(handle.as_fd(), libc::SIGKILL);
        }
        self.kill_all_of(slot);
        self.continue_deletion(slot);
    }

    fn kill_all_of(&mut self, slot: u32) {
        let Some(container) = self.containers.get(&slot) else {
            return;
        };
        let init = container.state.alive_init().map(|(_, handle)| handle);
        let execs = container
            .execs
            .values()
            .filter_map(|one| one.handle.as_ref());
        for handle in init.into_iter().chain(execs) {
            // It may have exited already.
            let _ = send_signal(handle.as_fd(), libc::SIGKILL);
        }
        if container.owns_pid_namespace && container.state.phase() == ContainerPhase::Exited {
            // The kernel has killed them all with the init.
            return;
        }
        let cgroup = container.what.cgroup.clone();
        if let Ok(Err(error)) = self.cgroups().map(|cgroups| cgroups.kill(&cgroup)) {
            self.warn_of("cannot kill all processes of a container", &error);
        }
    }

    /// Continues a deletion as far as possible.
    pub(super) fn continue_deletion(&mut self, slot: u32) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let helper = container.state.helper();
        let (None, Some(deletion)) = (helper, &mut container.deletion) else {
            return;
        };
        if deletion.step == DeletionStep::Waiting {
            deletion.step = DeletionStep::Done;
            match container.runtime.delete() {
                Ok(Progress::Done) => {}
                Ok(Progress::Helper(pid)) => deletion.step = DeletionStep::Helper(pid),
                Err(failure) => return self.deletion_failed(slot, &failure),
            }
        }
        // The exit of either continues the deletion.
        if deletion.step == DeletionStep::Done && !container.is_alive() {
            self.finish_deletion(slot);
        }
    }

    /// The `delete` program exited.
    pub(super) fn deletion_helper_ended(&mut self, slot: u32, ended: ProcessExit) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        if let Some(deletion) = &mut container.deletion {
            deletion.step = DeletionStep::Done;
        }
        if ended != ProcessExit::Exit(0) {
            let text = container.runtime.error_message(ended);
            let failure = CallFailure::new(FailureKind::Runtime, text);
            return self.deletion_failed(slot, &failure);
        }
        self.continue_deletion(slot);
    }

    /// Keeps the container, so that the deletion can be repeated. A container that was never
    /// created is dropped nevertheless, since no agent knows it.
    fn deletion_failed(&mut self, slot: u32, failure: &CallFailure) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        if !container.state.was_created() || self.pending_shutdown.is_some() {
            if !container.is_alive() {
                self.finish_deletion(slot);
            }
            return;
        }
        let deletion = container.deletion.take();
        for (to, _) in deletion.map_or(Vec::new(), |one| one.callers) {
            self.reply(to, Err(failure.clone()));
        }
    }

    fn finish_deletion(&mut self, slot: u32) {
        // The last attempt: after this, the shim no longer has the exit to write.
        self.record(slot);
        // Processes may have been forked after the first kill.
        self.kill_all_of(slot);
        let Some(mut container) = self.containers.remove(&slot) else {
            return;
        };
        container.end_startup(&self.watch);
        container.input.close(&self.watch);
        let warning = container.output.close(&mut OutputContext {
            slot,
            watch: &self.watch,
            stamp: &mut self.stamp,
            attachments: &mut self.attachments,
        });
        self.warn(warning);
        self.report_overruns();
        let undone = container.runtime.deleted();
        if let Err(failure) = &undone {
            self.warn(Some(failure.message.clone()));
        }
        for mut exec in container.execs.into_values() {
            exec.end_startup(&self.watch);
            match exec.caller {
                Some(to) => {
                    let text = "the container was deleted concurrently";
                    self.reply(to, Err(CallFailure::new(FailureKind::WrongState, text)));
                }
                // Killed, and not reaped yet. A client that waits for its exit must not wait
                // forever.
                None => self.report(Event::ExecExited {
                    container: container.what.id.clone(),
                    exec_id: exec.exec_id,
                    exit_code: 128 + libc::SIGKILL,
                    signal: Some(libc::SIGKILL),
                    at_ns: clock::now_ns(),
                }),
            }
        }
        for (_, to) in container.kills {
            self.reply(to, Ok(ShimReply::Done));
        }
        for (to, result) in container.deletion.map_or(Vec::new(), |one| one.callers) {
            self.reply(to, result.map(|()| ShimReply::Done));
        }
        self.finish_shutdown();
    }
}
