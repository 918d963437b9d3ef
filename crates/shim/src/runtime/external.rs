//! A program with the command line of `runc`: `crun` and `runc` itself.

use std::{
    fs,
    os::fd::{BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::{
    CreateOrder, ExecOrder, OciRuntime, ProcessExit, Progress, Startup, Step, Streams,
    command::{self, Call},
    console::ConsoleSocket,
    host_failure, overlay,
};
use crate::protocol::{CreateContainer, ExternalRuntime, Failure, FailureKind, Rootfs};

/// One container of an external runtime.
#[derive(Debug)]
pub(crate) struct External {
    program: Program,
    rootfs: Rootfs,
    /// The mount point of the root file system, once it is mounted.
    mounted: Option<PathBuf>,
    /// Whether `create` was called.
    asked: bool,
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

    fn call(&self, verb: &str) -> Call {
        let mut call = Call::new(&self.runtime.binary, &self.runtime.root, &self.log());
        if self.runtime.systemd_cgroup {
            call.arg("--systemd-cgroup");
        }
        call.arg(verb);
        call
    }

    fn complaint(&self, ended: ProcessExit) -> String {
        command::complaint(&self.log(), &self.runtime.binary, ended)
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
            asked: false,
        }
    }
}

impl OciRuntime for External {
    fn create(&mut self, order: CreateOrder<'_>) -> Result<Box<dyn Startup>, Failure> {
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
        // From here on `delete` must be called: a program that fails may have made something.
        self.asked = true;
        let helper = call.spawn()?;
        Ok(Box::new(Called {
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

    fn exec(&mut self, order: ExecOrder<'_>) -> Result<Box<dyn Startup>, Failure> {
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
        Ok(Box::new(Called {
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

    fn kill(&mut self, _: BorrowedFd<'_>, signal: i32) -> Result<Progress, Failure> {
        let mut call = self.program.call("kill");
        call.arg(&self.program.id).arg(signal.to_string());
        call.spawn().map(Progress::Helper)
    }

    fn delete(&mut self) -> Result<Progress, Failure> {
        if !self.asked {
            return Ok(Progress::Done);
        }
        let mut call = self.program.call("delete");
        call.arg("--force").arg(&self.program.id);
        call.spawn().map(Progress::Helper)
    }

    fn deleted(&mut self) -> Result<(), Failure> {
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

    fn complaint(&self, ended: ProcessExit) -> String {
        self.program.complaint(ended)
    }
}

/// Adds the arguments that `create` and `exec` share.
fn prepare(
    call: &mut Call,
    bundle: &Path,
    pid_file: &Path,
    streams: Streams,
    console_name: &str,
) -> Result<Option<ConsoleSocket>, Failure> {
    // Remove the PID file of an earlier call.
    let _ = fs::remove_file(pid_file);
    call.arg("--pid-file").arg(pid_file);
    match streams {
        Streams::Files(files) => {
            call.streams(files.map(Stdio::from));
            Ok(None)
        }
        Streams::Terminal => {
            let console = ConsoleSocket::listen(bundle, console_name)
                .map_err(|error| host_failure("cannot listen for the terminal", error))?;
            call.arg("--console-socket").arg(console.told());
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
struct Called {
    program: Program,
    helper: Option<i32>,
    pid_file: PathBuf,
    process_file: Option<PathBuf>,
    console: Option<ConsoleSocket>,
    /// Steps to return, the latest first.
    steps: Vec<Step>,
    is_exec: bool,
    stage: Stage,
}

impl Called {
    fn process(&self) -> Result<(i32, Option<OwnedFd>), String> {
        let broken = |why: &dyn std::fmt::Display| {
            format!(
                "{} wrote no valid process ID to {}: {why}",
                self.program.runtime.binary.display(),
                self.pid_file.display()
            )
        };
        let text = fs::read_to_string(&self.pid_file).map_err(|error| broken(&error))?;
        let pid: i32 = text.trim().parse().map_err(|error| broken(&error))?;
        // PID 1 and values that mean process groups are never valid.
        let known = Some(pid).filter(|pid| *pid > 1).and_then(Pid::from_raw);
        let process = known.ok_or_else(|| broken(&pid))?;
        match pidfd_open(process, PidfdFlags::empty()) {
            Ok(handle) => Ok((pid, Some(handle))),
            Err(rustix::io::Errno::SRCH) => Ok((pid, None)),
            Err(error) => Err(broken(&error)),
        }
    }

    fn created(&mut self) -> Result<Vec<Step>, String> {
        let (pid, handle) = self.process()?;
        let console = match self.console.take() {
            Some(socket) => Some(
                socket
                    .terminal()
                    .map_err(|error| format!("the terminal was not received: {error}"))?,
            ),
            None => None,
        };
        // Popped from the end: the process is reported before its creation.
        let mut steps = vec![
            Step::Created(console, Vec::new()),
            Step::Process(pid, handle),
        ];
        if self.is_exec {
            steps.insert(0, Step::Started);
        }
        Ok(steps)
    }
}

impl Startup for Called {
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
                Err(why) => (Stage::Over, vec![Step::Failed(why)]),
            },
            (Stage::Starting, true) => (Stage::Over, vec![Step::Started]),
            (_, _) => {
                let why = self.program.complaint(ended);
                (Stage::Over, vec![Step::Failed(why)])
            }
        };
    }

    fn advance(&mut self) -> Option<Step> {
        self.steps.pop()
    }

    fn go(&mut self) -> Result<(), Failure> {
        if self.is_exec {
            return Ok(());
        }
        if self.stage != Stage::Created {
            return Err(Failure::new(
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

impl Drop for Called {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.pid_file);
        if let Some(file) = &self.process_file {
            let _ = fs::remove_file(file);
        }
    }
}
