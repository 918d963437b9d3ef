//! Carries out the calls of agents.

use std::{fs::File, os::fd::OwnedFd};

use rubelet_host::cgroup::CgroupTarget;
use rustix::{
    pipe::{PipeFlags, pipe_with},
    process::{Pid, PidfdFlags, pidfd_open},
    termios::{Winsize, tcsetwinsize},
};

use super::{
    connection::ReplyTo,
    container::{Container, owns_pid_namespace},
    container_state::ContainerState,
    input::Input,
    output::Output,
    sandbox::Sandbox,
    shim::Shim,
    target,
    watch::{EventSource, Interest},
};
use crate::{
    exit_record,
    log::LogFile,
    protocol::{
        Call, CallFailure, CreateContainer, FailureKind, RuntimeChoice, SandboxSetup, ShimReply,
        ShimState, SignalTarget,
    },
    runtime::{self, CreateOrder, ProcessStdio, Progress, host_failure, send_signal},
};

impl Shim {
    /// Carries out a call; the reply may be sent later.
    pub(super) fn call(&mut self, to: ReplyTo, call: Call, fds: Vec<OwnedFd>) {
        if self.pending_shutdown.is_some() && !matches!(call, Call::State) {
            let text = "the shim is shutting down";
            return self.reply(to, Err(CallFailure::new(FailureKind::WrongState, text)));
        }
        let result = match call {
            Call::MakeSandbox(setup) => self.make_sandbox(*setup).map(Some),
            Call::Create(what) => self.create(to, *what).map(|()| None),
            Call::Start { id } => self.start(to, &id).map(|()| None),
            Call::Signal { id, signal, target } => self.signal(to, &id, signal, &target),
            Call::Exec(what) => self.exec(to, *what, fds).map(|()| None),
            Call::ReopenLog { id } => self.reopen_log(&id).map(Some),
            Call::Resize { id, width, height } => self.resize(&id, width, height).map(Some),
            Call::FeedStdin { id } => self.feed_stdin(&id, fds).map(Some),
            Call::Attach {
                id,
                attach_id,
                streams,
            } => self.attach(&id, &attach_id, streams, fds).map(Some),
            Call::CloseStdin { id } => self.close_stdin(&id).map(Some),
            Call::Delete { id } => {
                self.delete(to, &id);
                Ok(None)
            }
            Call::State => Ok(Some(ShimReply::State(Box::new(self.state())))),
            Call::Shutdown => {
                self.shut_down(to);
                Ok(None)
            }
        };
        match result {
            Ok(None) => {}
            Ok(Some(answer)) => self.reply(to, Ok(answer)),
            Err(failure) => self.reply(to, Err(failure)),
        }
    }

    fn state(&self) -> ShimState {
        ShimState {
            pid: std::process::id().cast_signed(),
            started_at_ns: self.started_at_ns,
            sandbox: self.sandbox.as_ref().map(Sandbox::state),
            containers: self.containers.values().map(Container::report).collect(),
            sequence: self.events.latest(),
            warnings: self.events.warnings(),
        }
    }

    fn make_sandbox(&mut self, setup: SandboxSetup) -> Result<ShimReply, CallFailure> {
        if self.sandbox.is_some() {
            return Err(CallFailure::new(
                FailureKind::AlreadyExists,
                "the shim already has a sandbox",
            ));
        }
        let sandbox = Sandbox::make(setup, self.cgroups())?;
        let state = sandbox.state();
        self.sandbox = Some(sandbox);
        Ok(ShimReply::Sandbox(Box::new(state)))
    }

    fn create(&mut self, to: ReplyTo, what: CreateContainer) -> Result<(), CallFailure> {
        if self.find(&what.id).is_some() {
            return Err(CallFailure::new(
                FailureKind::AlreadyExists,
                format!("container {} already exists in the shim", what.id),
            ));
        }
        if self.sandbox.is_none() {
            return Err(CallFailure::new(
                FailureKind::WrongState,
                "the shim has no sandbox yet",
            ));
        }
        self.begin_oom_kills(&what.cgroup);
        let spec = runtime::read_spec(&what.bundle)?;
        if spec.process.terminal != what.tty {
            return Err(CallFailure::new(
                FailureKind::Invalid,
                format!(
                    "the terminal setting in config.json of {} differs from the call",
                    what.id
                ),
            ));
        }
        exit_record::reserve(&what.bundle).map_err(|error| {
            let bundle = what.bundle.display();
            host_failure(
                &format!("cannot reserve the exit record in {bundle}"),
                error,
            )
        })?;
        let log = LogFile::open(what.log_path.as_deref(), what.max_log_bytes).map_err(|error| {
            let path = what.log_path.as_deref().unwrap_or(&what.bundle).display();
            host_failure(&format!("cannot open the log {path}"), error)
        })?;
        let cgroup = match what.runtime {
            RuntimeChoice::Embedded => Some(self.target(&what)?),
            RuntimeChoice::External(_) => None,
        };
        let target = match &what.pid_target {
            Some(id) => Some(self.hold_target(id, &what.bundle)?),
            None => None,
        };
        let mut output = Output::new(log);
        let mut input = Input::default();
        let streams = streams(&what, &mut output, &mut input)
            .map_err(|error| host_failure("cannot create the standard streams", error))?;
        let mut runtime = runtime::choose(&what);
        let sandbox = self.sandbox.as_ref().expect("it was looked for above");
        let startup = runtime.create(CreateOrder {
            what: &what,
            spec: &spec,
            streams,
            namespaces: target::joined(sandbox, target.as_ref()),
            cgroup: cgroup.as_ref(),
        });
        let startup = match startup {
            Ok(startup) => startup,
            Err(failure) => {
                // Unmounts its root file system.
                let _ = runtime.deleted();
                return Err(failure);
            }
        };
        let slot = self.new_slot();
        if let Some(reports) = startup.watch() {
            self.watch
                .add(reports, EventSource::Container(slot), Interest::Read)
                .map_err(|error| host_failure("cannot watch the container's init", error))?;
        }
        let container = Container {
            owns_pid_namespace: owns_pid_namespace(&spec),
            what,
            runtime,
            state: ContainerState::creating(startup, to),
            output,
            input,
            target,
            execs: std::collections::BTreeMap::new(),
            kills: Vec::new(),
            deletion: None,
        };
        self.containers.insert(slot, container);
        self.advance_container(slot);
        Ok(())
    }

    /// The container's cgroup, which the agent has created.
    pub(super) fn target(&mut self, what: &CreateContainer) -> Result<CgroupTarget, CallFailure> {
        let opened = self.cgroups()?.target(&what.cgroup);
        opened.map_err(|error| host_failure("cannot open the container's cgroup", error))
    }

    fn start(&mut self, to: ReplyTo, id: &str) -> Result<(), CallFailure> {
        let slot = self.known(id)?;
        let container = self.containers.get_mut(&slot).expect("it was just found");
        match &mut container.state {
            ContainerState::Created {
                startup: Some(startup),
                caller: caller @ None,
                ..
            } if container.deletion.is_none() => {
                startup.go()?;
                *caller = Some(to);
            }
            _ => return Err(container.wrong_state("started")),
        }
        self.advance_container(slot);
        Ok(())
    }

    fn signal(
        &mut self,
        to: ReplyTo,
        id: &str,
        signal: i32,
        target: &SignalTarget,
    ) -> Result<Option<ShimReply>, CallFailure> {
        let slot = self.known(id)?;
        if !(1..=libc::SIGRTMAX()).contains(&signal) {
            let text = format!("{signal} is not a valid signal");
            return Err(CallFailure::new(FailureKind::Invalid, text));
        }
        let container = self.containers.get_mut(&slot).expect("it was just found");
        match target {
            SignalTarget::Init => {
                let Some((_, handle)) = container.state.alive_init() else {
                    return Err(container.wrong_state("sent a signal"));
                };
                use std::os::fd::AsFd as _;
                match container.runtime.kill(handle.as_fd(), signal)? {
                    Progress::Done => Ok(Some(ShimReply::Done)),
                    Progress::Helper(pid) => {
                        container.kills.push((pid, to));
                        Ok(None)
                    }
                }
            }
            SignalTarget::Everyone => {
                let cgroup = container.what.cgroup.clone();
                if signal == libc::SIGKILL {
                    let killed = self.cgroups()?.kill(&cgroup);
                    killed.map_err(|error| host_failure("cannot kill the container", error))?;
                } else {
                    let processes = self.cgroups()?.processes(&cgroup).map_err(|error| {
                        host_failure("cannot list the container's processes", error)
                    })?;
                    // Open pidfds, then list the cgroup again: a PID that was reused by a process
                    // outside of the cgroup is only in the first list.
                    let handles: Vec<_> = processes
                        .into_iter()
                        .filter_map(|pid| Some((pid, open(pid)?)))
                        .collect();
                    let still = self.cgroups()?.processes(&cgroup).unwrap_or_default();
                    for (_, handle) in handles.iter().filter(|(pid, _)| still.contains(pid)) {
                        use std::os::fd::AsFd as _;
                        // It may have exited meanwhile.
                        let _ = send_signal(handle.as_fd(), signal);
                    }
                }
                Ok(Some(ShimReply::Done))
            }
            SignalTarget::Exec(exec_id) => {
                let mut execs = container.execs.values();
                let exec = execs.find(|exec| exec.exec_id == *exec_id);
                let Some(handle) = exec.and_then(|exec| exec.handle.as_ref()) else {
                    return Err(CallFailure::new(
                        FailureKind::NotFound,
                        format!("exec {exec_id} is not running in the container {id}"),
                    ));
                };
                use std::os::fd::AsFd as _;
                send_signal(handle.as_fd(), signal)?;
                Ok(Some(ShimReply::Done))
            }
        }
    }

    fn reopen_log(&mut self, id: &str) -> Result<ShimReply, CallFailure> {
        let slot = self.known(id)?;
        let container = self.containers.get_mut(&slot).expect("it was just found");
        let reopened = container.output.log.reopen();
        reopened.map_err(|error| host_failure("cannot reopen the log", error))?;
        Ok(ShimReply::Done)
    }

    fn resize(&mut self, id: &str, width: u16, height: u16) -> Result<ShimReply, CallFailure> {
        let slot = self.known(id)?;
        let container = self.containers.get_mut(&slot).expect("it was just found");
        let Some(terminal) = container.input.terminal() else {
            return Err(CallFailure::new(
                FailureKind::WrongState,
                format!("the container {id} has no terminal"),
            ));
        };
        let size = Winsize {
            ws_row: height,
            ws_col: width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(terminal, size)
            .map_err(|error| host_failure("cannot resize the terminal", error))?;
        Ok(ShimReply::Done)
    }

    fn feed_stdin(&mut self, id: &str, fds: Vec<OwnedFd>) -> Result<ShimReply, CallFailure> {
        let slot = self.known(id)?;
        let Ok([source]) = <[OwnedFd; 1]>::try_from(fds) else {
            return Err(CallFailure::new(
                FailureKind::Invalid,
                "standard input needs exactly one file descriptor",
            ));
        };
        let container = self.containers.get_mut(&slot).expect("it was just found");
        if container.what.tty && !container.what.stdin {
            return Err(CallFailure::new(
                FailureKind::WrongState,
                format!("the container {id} has no standard input (stdin: false)"),
            ));
        }
        container.input.feed(source, &self.watch, slot)?;
        Ok(ShimReply::Done)
    }

    fn close_stdin(&mut self, id: &str) -> Result<ShimReply, CallFailure> {
        let slot = self.known(id)?;
        let container = self.containers.get_mut(&slot).expect("it was just found");
        container.input.close(&self.watch);
        Ok(ShimReply::Done)
    }

    /// The container with that identifier, or an error.
    pub(super) fn known(&self, id: &str) -> Result<u32, CallFailure> {
        self.find(id).ok_or_else(|| {
            CallFailure::new(
                FailureKind::NotFound,
                format!("container {id} not found in the shim"),
            )
        })
    }
}

fn open(pid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn streams(
    what: &CreateContainer,
    output: &mut Output,
    input: &mut Input,
) -> std::io::Result<ProcessStdio> {
    if what.tty {
        return Ok(ProcessStdio::Terminal);
    }
    let stdin = if what.stdin {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        input.open(write, true)?;
        read
    } else {
        File::open("/dev/null")?.into()
    };
    let [stdout, stderr] = output.make_pipes(what.max_log_line)?;
    Ok(ProcessStdio::Files([stdin, stdout, stderr]))
}
