//! The embedded runtime.

use std::{
    fs,
    os::fd::{AsFd as _, BorrowedFd},
    path::PathBuf,
};

use rubelet_base::ErrorChain;
use rubelet_container::{
    ChildReport, ChildReports, Console, ExecLaunch, Launch, LaunchError, Launching, Overlay,
    RootfsSource, StartBarrier, Stdio, open_barrier, read_report,
};
use rubelet_oci::Process;

use super::{
    CreateOrder, ExecOrder, OciRuntime, ProcessExit, ProcessStdio, Progress, Startup, StartupStep,
};
use crate::protocol::{CallFailure, CreateContainer, FailureKind, Rootfs};

/// One container of the embedded runtime.
#[derive(Debug)]
pub(crate) struct Embedded {
    bundle: PathBuf,
    has_seccomp: bool,
}

impl Embedded {
    pub(crate) fn new(what: &CreateContainer) -> Self {
        Self {
            bundle: what.bundle.clone(),
            has_seccomp: what.has_seccomp,
        }
    }

    fn seccomp(&self) -> Result<Option<Vec<u8>>, CallFailure> {
        if !self.has_seccomp {
            return Ok(None);
        }
        let path = self.bundle.join("seccomp.bpf");
        fs::read(&path)
            .map(Some)
            .map_err(|error| super::host_failure(&format!("cannot read {}", path.display()), error))
    }
}

impl OciRuntime for Embedded {
    fn create(&mut self, order: CreateOrder<'_>) -> Result<Box<dyn Startup>, CallFailure> {
        let seccomp = self.seccomp()?;
        let overlay = match &order.what.rootfs {
            Rootfs::Ready => None,
            Rootfs::Overlay { lower, upper, work } => Some(Overlay {
                lower: lower.clone(),
                upper: upper.clone(),
                work: work.clone(),
            }),
        };
        let directory = self.bundle.join(&order.spec.root.path);
        let rootfs = match &overlay {
            Some(overlay) => RootfsSource::Overlay(overlay),
            None => RootfsSource::Directory(&directory),
        };
        let launching = rubelet_container::launch(Launch {
            spec: order.spec,
            rootfs,
            mount_at: &self.bundle,
            stdio: stdio(order.streams, &order.spec.process),
            cgroup: required(order.cgroup)?,
            namespaces: order.namespaces,
            seccomp: seccomp.as_deref(),
        });
        begun(launching)
    }

    fn exec(&mut self, order: ExecOrder<'_>) -> Result<Box<dyn Startup>, CallFailure> {
        let spec = super::read_spec(&self.bundle)?;
        let seccomp = self.seccomp()?;
        let launching = rubelet_container::exec(ExecLaunch {
            target: order.init,
            spec: &spec,
            process: order.process,
            stdio: stdio(order.streams, order.process),
            cgroup: required(order.cgroup)?,
            seccomp: seccomp.as_deref(),
        });
        begun(launching)
    }

    fn kill(&mut self, init: BorrowedFd<'_>, signal: i32) -> Result<Progress, CallFailure> {
        super::send_signal(init, signal)?;
        Ok(Progress::Done)
    }

    fn delete(&mut self) -> Result<Progress, CallFailure> {
        Ok(Progress::Done)
    }

    fn deleted(&mut self) -> Result<(), CallFailure> {
        Ok(())
    }

    fn error_message(&self, ended: ProcessExit) -> String {
        ended.to_string()
    }
}

fn required<T>(cgroup: Option<T>) -> Result<T, CallFailure> {
    cgroup.ok_or_else(|| CallFailure::new(FailureKind::Internal, "the container has no cgroup"))
}

fn stdio(streams: ProcessStdio, process: &Process) -> Stdio {
    match streams {
        ProcessStdio::Files([stdin, stdout, stderr]) => Stdio::Files {
            stdin,
            stdout,
            stderr,
        },
        ProcessStdio::Terminal => {
            let size = process.console_size.unwrap_or_default();
            Stdio::Console(Console {
                height: u16::try_from(size.height).unwrap_or(u16::MAX),
                width: u16::try_from(size.width).unwrap_or(u16::MAX),
            })
        }
    }
}

fn begun(launching: Result<Launching, LaunchError>) -> Result<Box<dyn Startup>, CallFailure> {
    match launching {
        Ok(launching) => {
            let prepares = launching.prepares;
            let process = (!prepares).then_some((launching.pid, launching.pidfd));
            Ok(Box::new(ForkedStartup {
                process,
                helper: prepares.then_some(launching.pid),
                awaits_init: prepares,
                reports: launching.reports,
                is_over: false,
                barrier: Some(launching.barrier),
            }))
        }
        Err(error) => {
            let text = ErrorChain(&error).to_string();
            Err(CallFailure::new(FailureKind::Runtime, text))
        }
    }
}

const NOT_PREPARED: &str = "the process that sets up the container's init was killed; perhaps the \
     container's memory limit is too low";

/// A child process that reports its start.
#[derive(Debug)]
struct ForkedStartup {
    process: Option<(i32, std::os::fd::OwnedFd)>,
    /// The process that creates the init, until it exits.
    helper: Option<i32>,
    /// The init is not reported yet.
    awaits_init: bool,
    reports: ChildReports,
    /// The last report was read.
    is_over: bool,
    barrier: Option<StartBarrier>,
}

impl Startup for ForkedStartup {
    fn watch(&self) -> Option<BorrowedFd<'_>> {
        Some(self.reports.as_fd())
    }

    fn helper(&self) -> Option<i32> {
        self.helper
    }

    fn helper_ended(&mut self, _: ProcessExit) {
        self.helper = None;
    }

    fn advance(&mut self) -> Option<StartupStep> {
        if let Some((pid, pidfd)) = self.process.take() {
            return Some(StartupStep::Process(pid, Some(pidfd)));
        }
        if self.is_over {
            return None;
        }
        let step = match read_report(&mut self.reports) {
            // An init that it may have created is killed with the container's cgroup.
            Ok(None) if self.awaits_init && self.helper.is_none() => {
                StartupStep::Failed(NOT_PREPARED.to_owned())
            }
            Ok(None) => return None,
            Ok(Some(ChildReport::Init { pid, pidfd })) => {
                self.awaits_init = false;
                return Some(StartupStep::Process(pid, Some(pidfd)));
            }
            Ok(Some(ChildReport::Created { console, warnings })) => {
                return Some(StartupStep::Created(console, warnings));
            }
            Ok(Some(ChildReport::Started)) => StartupStep::Started,
            Ok(Some(ChildReport::Failed(why) | ChildReport::StartFailed(why))) => {
                StartupStep::Failed(why)
            }
            Err(error) => {
                StartupStep::Failed(format!("cannot read the reports of its init: {error}"))
            }
        };
        self.is_over = true;
        Some(step)
    }

    fn go(&mut self) -> Result<(), CallFailure> {
        match self.barrier.take() {
            Some(barrier) => open_barrier(barrier),
            None => {
                return Err(CallFailure::new(
                    FailureKind::WrongState,
                    "the program was started already",
                ));
            }
        }
        Ok(())
    }
}
