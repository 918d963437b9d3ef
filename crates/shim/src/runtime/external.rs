//! A program with the command line of `runc`: `crun` and `runc` itself.

use std::{
    fs, io,
    num::ParseIntError,
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::Stdio,
};

use rubelet_base::ErrorChain;
use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};

use super::{
    CreateOrder, ExecOrder, OciRuntime, ProcessExit, ProcessStdio, Progress, Startup, StartupStep,
    command::{self, RuntimeCommand},
    console::ConsoleSocket,
    host_failure, overlay,
};
use crate::protocol::{CallFailure, CreateContainer, ExternalRuntime, FailureKind, Rootfs};

/// One container of an external runtime.
#[derive(Debug)]
pub(crate) struct External {
    program: Program,
    rootfs: Rootfs,
    /// The mount point of the root file system, once it is mounted.
    mounted: Option<PathBuf>,
    /// `create` was called.
    create_called: bool,
}

/// The program and its paths for one container.
#[derive(Debug, Clone)]
struct Program {
    id: String,
    bundle: PathBuf,
    runtime: ExternalRuntime,
}

impl Program {
    fn log(&self) -> PathBuf {
        self.bundle.join("runtime.log")
    }

    fn call(&self, verb: &str) -> RuntimeCommand {
        let mut call = RuntimeCommand::new(&self.runtime.binary, &self.runtime.root, &self.log());
        if self.runtime.systemd_cgroup {
            call.arg("--systemd-cgroup");
        }
        call.arg(verb);
        call
    }

    fn error_message(&self, ended: ProcessExit) -> String {
        command::error_message(&self.log(), &self.runtime.binary, ended)
    }
}

impl External {
    pub(crate) fn new(what: &CreateContainer, runtime: ExternalRuntime) -> Self {
        Self {
            program: Program {
                id: what.id.clone(),
                bundle: what.bundle.clone(),
                runtime,
            },
            rootfs: what.rootfs.clone(),
            mounted: None,
            create_called: false,
        }
    }
}

impl OciRuntime for External {
    fn create(&mut self, order: CreateOrder<'_>) -> Result<Box<dyn Startup>, CallFailure> {
        let bundle = &self.program.bundle;
        let at = bundle.join(&order.spec.root.path);
        overlay::mount(&self.rootfs, &at).map_err(|error| {
            host_failure(
                &format!("cannot mount the root file system on {}", at.display()),
                error,
            )
        })?;
        self.mounted = Some(at);
        let pid_file = bundle.join("init.pid");
        let mut call = self.program.call("create");
        call.arg("--bundle").arg(bundle);
        let console = prepare(&mut call, bundle, &pid_file, order.streams, "console.sock")?;
        call.arg(&self.program.id);
        // From here on `delete` must be called: a program that fails may leave state behind.
        self.create_called = true;
        let helper = call.spawn()?;
        Ok(Box::new(CommandStartup {
            program: self.program.clone(),
            helper: Some(helper),
            pid_file,
            process_file: None,
            console,
            steps: Vec::new(),
            is_exec: false,
            stage: Stage::Creating,
        }))
    }

    fn exec(&mut self, order: ExecOrder<'_>) -> Result<Box<dyn Startup>, CallFailure> {
        let bundle = &self.program.bundle;
        // The agent's identifier may not be a valid file name.
        let name = order.exec_id.replace(['/', '.', '\0'], "-");
        let process_file = bundle.join(format!("exec-{name}.json"));
        let text = serde_json::to_vec(order.process)
            .map_err(|error| host_failure("cannot write the process as JSON", error))?;
        fs::write(&process_file, text).map_err(|error| {
            host_failure(&format!("cannot write {}", process_file.display()), error)
        })?;
        let pid_file = bundle.join(format!("exec-{name}.pid"));
        let mut call = self.program.call("exec");
        call.arg("--detach").arg("--process").arg(&process_file);
        let name = format!("exec-{name}.sock");
        let console = prepare(&mut call, bundle, &pid_file, order.streams, &name)?;
        call.arg(&self.program.id);
        let helper = call.spawn()?;
        Ok(Box::new(CommandStartup {
            program: self.program.clone(),
            helper: Some(helper),
            pid_file,
            process_file: Some(process_file),
            console,
            steps: Vec::new(),
            is_exec: true,
            stage: Stage::Creating,
        }))
    }

    fn kill(&mut self, _: BorrowedFd<'_>, signal: i32) -> Result<Progress, CallFailure> {
        let mut call = self.program.call("kill");
        call.arg(&self.program.id).arg(signal.to_string());
        call.spawn().map(Progress::Helper)
    }

    fn delete(&mut self) -> Result<Progress, CallFailure> {
        if !self.create_called {
            return Ok(Progress::Done);
        }
        let mut call = self.program.call("delete");
        call.arg("--force").arg(&self.program.id);
        call.spawn().map(Progress::Helper)
    }

    fn deleted(&mut self) -> Result<(), CallFailure> {
        let _ = fs::remove_file(self.program.log());
        let Some(at) = self.mounted.take() else {
            return Ok(());
        };
        overlay::unmount(&self.rootfs, &at).map_err(|error| {
            host_failure(
                &format!("cannot unmount the root file system from {}", at.display()),
                error,
            )
        })
    }

    fn error_message(&self, ended: ProcessExit) -> String {
        self.program.error_message(ended)
    }
}

/// Adds the arguments that `create` and `exec` share.
fn prepare(
    call: &mut RuntimeCommand,
    bundle: &Path,
    pid_file: &Path,
    streams: ProcessStdio,
    console_name: &str,
) -> Result<Option<ConsoleSocket>, CallFailure> {
    // Remove the PID file of an earlier call.
    let _ = fs::remove_file(pid_file);
    call.arg("--pid-file").arg(pid_file);
    match streams {
        ProcessStdio::Files(files) => {
            call.streams(files.map(Stdio::from));
            Ok(None)
        }
        ProcessStdio::Terminal => {
            let console = ConsoleSocket::listen(bundle, console_name)
                .map_err(|error| host_failure("cannot listen for the terminal", error))?;
            call.arg("--console-socket").arg(console.path_for_runtime());
            Ok(Some(console))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Creating,
    Created,
    Starting,
    Over,
}

/// A process that the program starts.
#[derive(Debug)]
struct CommandStartup {
    program: Program,
    helper: Option<i32>,
    pid_file: PathBuf,
    process_file: Option<PathBuf>,
    console: Option<ConsoleSocket>,
    /// Steps to return, the latest first.
    steps: Vec<StartupStep>,
    is_exec: bool,
    stage: Stage,
}

/// Why a process is not usable although the program says that it created it.
#[derive(Debug, thiserror::Error)]
enum CreatedError {
    /// Its first process is unknown.
    #[error("{} wrote no valid process ID to {}", binary.display(), file.display())]
    Process {
        binary: PathBuf,
        file: PathBuf,
        source: PidFileError,
    },
    /// Its terminal was not received.
    #[error("the terminal was not received")]
    Terminal(#[source] io::Error),
}

/// Why a PID file names no process.
#[derive(Debug, thiserror::Error)]
enum PidFileError {
    /// It can't be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// It holds no number.
    #[error(transparent)]
    Parse(#[from] ParseIntError),
    /// No container has this process ID.
    #[error("{0}")]
    Reserved(i32),
    /// The process can't be watched.
    #[error(transparent)]
    Open(Errno),
}

impl CommandStartup {
    fn process(&self) -> Result<(i32, Option<OwnedFd>), PidFileError> {
        let text = fs::read_to_string(&self.pid_file)?;
        let pid: i32 = text.trim().parse()?;
        // PID 1 and values that mean process groups are never valid.
        let known = Some(pid).filter(|pid| *pid > 1).and_then(Pid::from_raw);
        let process = known.ok_or(PidFileError::Reserved(pid))?;
        match pidfd_open(process, PidfdFlags::empty()) {
            Ok(handle) => Ok((pid, Some(handle))),
            Err(Errno::SRCH) => Ok((pid, None)),
            Err(error) => Err(PidFileError::Open(error)),
        }
    }

    fn created(&mut self) -> Result<Vec<StartupStep>, CreatedError> {
        let (pid, handle) = self.process().map_err(|source| CreatedError::Process {
            binary: self.program.runtime.binary.clone(),
            file: self.pid_file.clone(),
            source,
        })?;
        let console = match self.console.take() {
            Some(socket) => Some(socket.terminal().map_err(CreatedError::Terminal)?),
            None => None,
        };
        // Popped from the end: the process is reported before its creation.
        let mut steps = vec![
            StartupStep::Created(console, Vec::new()),
            StartupStep::Process(pid, handle),
        ];
        if self.is_exec {
            steps.insert(0, StartupStep::Started);
        }
        Ok(steps)
    }
}

impl Startup for CommandStartup {
    fn watch(&self) -> Option<BorrowedFd<'_>> {
        // The socket is read after the program has exited, which is after it sent the terminal.
        None
    }

    fn helper(&self) -> Option<i32> {
        self.helper
    }

    fn helper_ended(&mut self, ended: ProcessExit) {
        self.helper = None;
        let worked = ended == ProcessExit::Exit(0);
        (self.stage, self.steps) = match (self.stage, worked) {
            (Stage::Creating, true) => match self.created() {
                Ok(steps) if self.is_exec => (Stage::Over, steps),
                Ok(steps) => (Stage::Created, steps),
                Err(error) => {
                    let why = ErrorChain(&error).to_string();
                    (Stage::Over, vec![StartupStep::Failed(why)])
                }
            },
            (Stage::Starting, true) => (Stage::Over, vec![StartupStep::Started]),
            (_, _) => {
                let why = self.program.error_message(ended);
                (Stage::Over, vec![StartupStep::Failed(why)])
            }
        };
    }

    fn advance(&mut self) -> Option<StartupStep> {
        self.steps.pop()
    }

    fn go(&mut self) -> Result<(), CallFailure> {
        if self.is_exec {
            return Ok(());
        }
        if self.stage != Stage::Created {
            return Err(CallFailure::new(
                FailureKind::WrongState,
                "the program was started already",
            ));
        }
        let mut call = self.program.call("start");
        call.arg(&self.program.id);
        self.helper = Some(call.spawn()?);
        self.stage = Stage::Starting;
        Ok(())
    }
}

impl Drop for CommandStartup {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.pid_file);
        if let Some(file) = &self.process_file {
            let _ = fs::remove_file(file);
        }
    }
}
