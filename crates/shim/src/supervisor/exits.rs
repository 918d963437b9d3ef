//! Exits of processes: finds the owner of each, and handles its exit.

use super::{
    connection::ReplyTo, container::DeletionStep, container_state::ContainerState,
    output::OutputContext, shim::Shim,
};
use crate::{
    clock, exit_record,
    protocol::{CallFailure, Event, FailureKind, ShimReply},
    runtime::ProcessExit,
};

/// The owner of a process.
#[derive(Clone, Copy)]
enum ProcessOwner {
    /// The init of a container.
    Init(u32),
    /// A process that joined a container.
    Exec(u32, u32),
    /// An external runtime that creates a container.
    Startup(u32),
    /// An external runtime that starts an exec.
    ExecStartup(u32),
    /// A `kill` program.
    Kill(u32, ReplyTo),
    /// A `delete` program.
    Deletion(u32),
    /// The pause process of the pod.
    Pause,
}

impl Shim {
    /// Reaps all children that exited.
    pub(super) fn reap(&mut self) {
        self.children.clear();
        // SIGCHLD is not queued: one signal may report many children.
        while let Some((pid, ended)) = self.children.reap() {
            match self.owner_of(pid) {
                Some(owner) => self.process_ended(owner, ended),
                // An external runtime reports an init after it was forked, so its exit can be first.
                None => self.children.remember(pid, ended),
            }
        }
        if !self.containers.values().any(|one| one.has_helper()) {
            self.children.forget();
        }
    }

    fn owner_of(&self, pid: i32) -> Option<ProcessOwner> {
        let pause = self.sandbox.as_ref().and_then(|one| one.pause_pid());
        if pause == Some(pid) {
            return Some(ProcessOwner::Pause);
        }
        self.containers.iter().find_map(|(slot, container)| {
            let slot = *slot;
            // Not one that was reaped: its PID may be that of another process by now.
            let init = container.state.alive_init();
            if init.is_some_and(|(of_init, _)| of_init == pid) {
                return Some(ProcessOwner::Init(slot));
            }
            if let Some(number) = container.exec_of_pid(pid) {
                return Some(ProcessOwner::Exec(slot, number));
            }
            if container.state.helper() == Some(pid) {
                return Some(ProcessOwner::Startup(slot));
            }
            let mut execs = container.execs.iter();
            let exec = execs
                .find(|(_, exec)| exec.startup.as_ref().and_then(|one| one.helper()) == Some(pid));
            if let Some((number, _)) = exec {
                return Some(ProcessOwner::ExecStartup(*number));
            }
            if let Some((_, to)) = container.kills.iter().find(|(helper, _)| *helper == pid) {
                return Some(ProcessOwner::Kill(slot, *to));
            }
            let deletion = container.deletion.as_ref().map(|one| one.step);
            let deletes = deletion == Some(DeletionStep::Helper(pid));
            deletes.then_some(ProcessOwner::Deletion(slot))
        })
    }

    fn process_ended(&mut self, owner: ProcessOwner, ended: ProcessExit) {
        match owner {
            ProcessOwner::Pause => {
                if let Some(sandbox) = &mut self.sandbox {
                    sandbox.pause_ended();
                }
                self.report(Event::PauseExited {
                    at_ns: clock::now_ns(),
                });
            }
            ProcessOwner::Init(slot) => {
                // Its reports are handled before its exit.
                self.advance_container(slot);
                self.init_ended(slot, ended);
            }
            ProcessOwner::Exec(slot, number) => {
                self.advance_exec(number);
                let Some(container) = self.containers.get_mut(&slot) else {
                    return;
                };
                match container.execs.get_mut(&number) {
                    // Its external runtime has not reported it yet.
                    Some(exec)
                        if exec
                            .startup
                            .as_ref()
                            .is_some_and(|one| one.helper().is_some()) =>
                    {
                        exec.ended_early = Some(ended);
                        exec.handle = None;
                    }
                    Some(_) => self.exec_ended(slot, number, ended),
                    None => {}
                }
            }
            ProcessOwner::Startup(slot) => {
                if let Some(container) = self.containers.get_mut(&slot)
                    && let Some(startup) = container.state.startup_mut()
                {
                    startup.helper_ended(ended);
                }
                self.advance_container(slot);
                // A deletion does not begin before the program that creates or starts has exited.
                self.continue_deletion(slot);
            }
            ProcessOwner::ExecStartup(number) => {
                let execs = self.containers.values_mut().flat_map(|one| &mut one.execs);
                let mut found = execs.filter(|(key, _)| **key == number);
                if let Some((_, exec)) = found.next()
                    && let Some(startup) = &mut exec.startup
                {
                    startup.helper_ended(ended);
                }
                drop(found);
                self.advance_exec(number);
            }
            ProcessOwner::Kill(slot, to) => self.kill_ended(slot, to, ended),
            ProcessOwner::Deletion(slot) => self.deletion_helper_ended(slot, ended),
        }
    }

    fn kill_ended(&mut self, slot: u32, to: ReplyTo, ended: ProcessExit) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.kills.retain(|(_, other)| *other != to);
        let result = match ended {
            ProcessExit::Exit(0) => Ok(ShimReply::Done),
            // It exited while the `kill` program was running.
            _ if !container.is_alive() => Err(container.wrong_state("sent a signal")),
            _ => Err(CallFailure::new(
                FailureKind::Runtime,
                container.runtime.error_message(ended),
            )),
        };
        self.reply(to, result);
    }

    /// The init of a container was reaped.
    fn init_ended(&mut self, slot: u32, ended: ProcessExit) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        if container.state.helper().is_some() {
            // It may have exited before its external runtime reported it.
            return container.state.on_early_exit(ended);
        }
        self.handle_init_exit(slot, ended);
    }

    /// Handles an exit that came before the report of the runtime.
    pub(super) fn end_early_init(&mut self, slot: u32) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        if container.state.helper().is_none()
            && let Some(ended) = container.state.early_exit()
        {
            self.handle_init_exit(slot, ended);
        }
    }

    fn handle_init_exit(&mut self, slot: u32, ended: ProcessExit) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        container.end_startup(&self.watch);
        let cgroup = container.what.cgroup.clone();
        // With a PID namespace of its own the kernel has killed the rest with the init (pid_namespaces(7)).
        if !container.owns_pid_namespace {
            let killed = self.cgroups().map(|cgroups| cgroups.kill(&cgroup));
            if let Ok(Err(error)) = killed {
                self.warn_of(
                    "cannot kill the remaining processes of a container that exited",
                    &error,
                );
            }
        }
        let oom_killed = self.settle_oom_kills(slot) > 0;
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        // Output still in the pipes was written before the exit, so it is logged before the exit is
        // reported.
        let lost = container.output.drain(&mut OutputContext {
            slot,
            watch: &self.watch,
            stamp: &mut self.stamp,
            attachments: &mut self.attachments,
        });
        let caller = container.state.take_caller();
        let text = format!("it exited before its program was started: {ended}");
        let failure = CallFailure::new(FailureKind::Runtime, text);
        let exit = container.state.on_exit(ended, clock::now_ns(), oom_killed);
        let Some(exit) = exit else {
            self.begin_deletion(slot, caller.map(|to| (to, Err(failure))));
            return;
        };
        container.input.close(&self.watch);
        let id = container.what.id.clone();
        self.warn(lost);
        self.report_overruns();
        // The file first: if the agent dies after the event, the next one must find the exit.
        self.record(slot);
        self.report(Event::Exited {
            container: id,
            exit,
        });
        if let Some(to) = caller {
            self.reply(to, Err(failure));
        }
        self.continue_deletion(slot);
    }

    /// Writes the exit record of a container. A failure is a warning: the event stays in memory,
    /// and the write is repeated when an agent subscribes or the container is deleted.
    pub(super) fn record(&mut self, slot: u32) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let ContainerState::Exited {
            exit,
            recorded: recorded @ false,
            ..
        } = &mut container.state
        else {
            return;
        };
        match exit_record::write(&container.what.bundle, exit) {
            Ok(files) => {
                *recorded = true;
                for file in files {
                    // Without it the kernel writes the file within half a minute.
                    let _ = self.flush.begin(&file);
                }
            }
            Err(error) => {
                let bundle = container.what.bundle.display();
                let what = format!("cannot write the exit record in {bundle}");
                self.warn_of(&what, &error);
            }
        }
    }
}
