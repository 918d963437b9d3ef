//! Execs: processes that join a container.

use std::{collections::BTreeMap, fs::File, os::fd::AsFd as _, os::fd::OwnedFd};

use super::{
    connection::ReplyTo,
    container::{Container, Exec},
    container_state::ContainerState,
    shim::Shim,
    watch::{EventSource, Interest},
};
use crate::{
    clock,
    protocol::{CallFailure, Event, FailureKind, RuntimeChoice, ShimReply, StartExec, StreamFds},
    runtime::{ExecOrder, ProcessExit, ProcessStdio, StartupStep, host_failure},
};

impl Shim {
    /// Starts an exec.
    pub(super) fn exec(
        &mut self,
        to: ReplyTo,
        what: StartExec,
        fds: Vec<OwnedFd>,
    ) -> Result<(), CallFailure> {
        let slot = self.known(&what.id)?;
        let streams = if what.process.terminal {
            ProcessStdio::Terminal
        } else {
            standard_streams(what.streams, fds)?
        };
        let container = &self.containers[&slot];
        let runs = matches!(container.state, ContainerState::Running { .. });
        if !runs || container.deletion.is_some() {
            return Err(container.wrong_state("joined by an exec"));
        }
        if container
            .execs
            .values()
            .any(|exec| exec.exec_id == what.exec_id)
        {
            return Err(CallFailure::new(
                FailureKind::AlreadyExists,
                format!("exec {} already exists", what.exec_id),
            ));
        }
        let cgroup = match container.what.runtime {
            RuntimeChoice::Embedded => Some(self.target(&container.what.clone())?),
            RuntimeChoice::External(_) => None,
        };
        let container = self.containers.get_mut(&slot).expect("it was just found");
        let Some((_, init)) = container.state.alive_init() else {
            return Err(container.wrong_state("joined by an exec"));
        };
        let mut startup = container.runtime.exec(ExecOrder {
            exec_id: &what.exec_id,
            process: &what.process,
            streams,
            init: init.as_fd(),
            cgroup: cgroup.as_ref(),
        })?;
        // Nothing has to happen between its creation and its start.
        startup.go()?;
        let number = self.new_slot();
        if let Some(reports) = startup.watch() {
            self.watch
                .add(reports, EventSource::Exec(number), Interest::Read)
                .map_err(|error| host_failure("cannot watch the process", error))?;
        }
        let exec = Exec {
            exec_id: what.exec_id,
            startup: Some(startup),
            caller: Some(to),
            pid: 0,
            handle: None,
            console: None,
            ended_early: None,
        };
        let container = self.containers.get_mut(&slot).expect("it was just found");
        container.execs.insert(number, exec);
        self.advance_exec(number);
        Ok(())
    }

    /// The exec with that number, and its container.
    fn exec_mut(&mut self, number: u32) -> Option<(u32, &mut Exec)> {
        find_exec(&mut self.containers, number)
    }

    /// Handles the steps that the runtime has made with an exec.
    pub(super) fn advance_exec(&mut self, number: u32) {
        loop {
            let Some((slot, exec)) = self.exec_mut(number) else {
                return;
            };
            match exec.startup.as_mut().and_then(|one| one.advance()) {
                Some(StartupStep::Process(pid, handle)) => {
                    exec.pid = pid;
                    let gone = handle.is_none();
                    exec.handle = handle;
                    let recalled = self.children.recall(pid);
                    if let Some((_, exec)) = self.exec_mut(number) {
                        exec.ended_early = recalled.or(gone.then_some(ProcessExit::Exit(255)));
                        if exec.ended_early.is_some() {
                            exec.handle = None;
                        }
                    }
                }
                Some(StartupStep::Created(console, warnings)) => {
                    exec.console = console;
                    for warning in warnings {
                        self.warn(Some(warning));
                    }
                }
                Some(StartupStep::Started) => self.exec_started(number),
                Some(StartupStep::Failed(why)) => self.exec_failed(slot, number, why),
                None => break,
            }
        }
        // A short command may have exited before its external runtime did.
        let early = self.exec_mut(number).and_then(|(slot, exec)| {
            let is_up = exec.startup.is_none();
            Some((slot, exec.ended_early.take_if(|_| is_up)?))
        });
        if let Some((slot, ended)) = early {
            self.exec_ended(slot, number, ended);
        }
    }

    fn exec_started(&mut self, number: u32) {
        // Not `exec_mut`, which would borrow `self.watch` as well.
        let Some((_, exec)) = find_exec(&mut self.containers, number) else {
            return;
        };
        exec.end_startup(&self.watch);
        let answer = ShimReply::Exec { pid: exec.pid };
        let fds = exec.console.take().into_iter().collect();
        let caller = exec.caller.take();
        if let Some(to) = caller {
            self.reply_with(to, Ok(answer), fds);
        }
    }

    fn exec_failed(&mut self, slot: u32, number: u32, why: String) {
        let Some((_, exec)) = find_exec(&mut self.containers, number) else {
            return;
        };
        exec.end_startup(&self.watch);
        let caller = exec.caller.take();
        // A forked process whose start failed is unknown when it is reaped.
        if let Some(container) = self.containers.get_mut(&slot) {
            container.execs.remove(&number);
        }
        if let Some(to) = caller {
            self.reply(to, Err(CallFailure::new(FailureKind::Runtime, why)));
        }
    }

    /// An exec was reaped.
    pub(super) fn exec_ended(&mut self, slot: u32, number: u32, ended: ProcessExit) {
        let Some(container) = self.containers.get_mut(&slot) else {
            return;
        };
        let Some(mut exec) = container.execs.remove(&number) else {
            return;
        };
        exec.end_startup(&self.watch);
        let container_id = container.what.id.clone();
        // Without an event: the agent never learned of this process.
        if let Some(to) = exec.caller {
            let text = format!("it exited before its program was started: {ended}");
            return self.reply(to, Err(CallFailure::new(FailureKind::Runtime, text)));
        }
        self.report(Event::ExecExited {
            container: container_id,
            exec_id: exec.exec_id,
            exit_code: ended.code(),
            signal: ended.signal(),
            at_ns: clock::now_ns(),
        });
    }
}

fn find_exec(containers: &mut BTreeMap<u32, Container>, number: u32) -> Option<(u32, &mut Exec)> {
    let mut all = containers.iter_mut();
    all.find_map(|(slot, one)| Some((*slot, one.execs.get_mut(&number)?)))
}

impl Container {
    /// The number of the exec with that PID.
    pub(super) fn exec_of_pid(&self, pid: i32) -> Option<u32> {
        let mut all = self.execs.iter();
        all.find(|(_, exec)| exec.pid == pid && pid != 0)
            .map(|(number, _)| *number)
    }
}

/// The three standard streams; missing ones are /dev/null.
fn standard_streams(which: StreamFds, fds: Vec<OwnedFd>) -> Result<ProcessStdio, CallFailure> {
    if which.count() != fds.len() {
        return Err(CallFailure::new(
            FailureKind::Invalid,
            format!(
                "{} file descriptors for {} standard streams",
                fds.len(),
                which.count()
            ),
        ));
    }
    let mut fds = fds.into_iter();
    let mut take = |came: bool| -> Result<OwnedFd, CallFailure> {
        if came && let Some(fd) = fds.next() {
            return Ok(fd);
        }
        let null = File::options().read(true).write(true).open("/dev/null");
        null.map(OwnedFd::from)
            .map_err(|error| host_failure("cannot open /dev/null", error))
    };
    Ok(ProcessStdio::Files([
        take(which.stdin)?,
        take(which.stdout)?,
        take(which.stderr)?,
    ]))
}
