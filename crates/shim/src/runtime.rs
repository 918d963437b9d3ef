//! OCI runtimes: a trait, the embedded runtime and external programs. Nothing here blocks:
//! operations that take time report to the epoll loop.

mod command;
mod console;
mod embedded;
mod external;
mod overlay;
mod signal;

use std::{
    error::Error,
    fmt::Debug,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

use rubelet_base::ErrorChain;
use rubelet_container::JoinedNamespaces;
use rubelet_host::cgroup::CgroupTarget;
use rubelet_oci::{Process, Spec};

use crate::protocol::{CallFailure, CreateContainer, FailureKind, RuntimeChoice};

pub(crate) use command::ProcessExit;
pub(crate) use embedded::Embedded;
pub(crate) use external::External;
pub(crate) use signal::send_signal;

/// An OCI runtime, for one container: creates, signals and deletes it.
pub(crate) trait OciRuntime: Debug {
    /// Starts to create the container.
    fn create(&mut self, order: CreateOrder<'_>) -> Result<Box<dyn Startup>, CallFailure>;

    /// Starts an exec in the container.
    fn exec(&mut self, order: ExecOrder<'_>) -> Result<Box<dyn Startup>, CallFailure>;

    /// Sends a signal to its init.
    fn kill(&mut self, init: BorrowedFd<'_>, signal: i32) -> Result<Progress, CallFailure>;

    /// Deletes the runtime's state of the container; kills it if it runs.
    fn delete(&mut self) -> Result<Progress, CallFailure>;

    /// Must be called after [`Self::delete`] has finished.
    fn deleted(&mut self) -> Result<(), CallFailure>;

    /// The error message of a program that exited.
    fn error_message(&self, ended: ProcessExit) -> String;
}

/// The progress of an operation of a runtime.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It is complete.
    Done,
    /// A program with this PID runs; its exit status is the result.
    Helper(i32),
}

/// The parameters of a container.
#[derive(Debug)]
pub(crate) struct CreateOrder<'a> {
    pub(crate) what: &'a CreateContainer,
    pub(crate) spec: &'a Spec,
    pub(crate) streams: ProcessStdio,
    pub(crate) namespaces: JoinedNamespaces<'a>,
    pub(crate) cgroup: Option<&'a CgroupTarget>,
}

/// The parameters of an exec.
#[derive(Debug)]
pub(crate) struct ExecOrder<'a> {
    pub(crate) exec_id: &'a str,
    pub(crate) process: &'a Process,
    pub(crate) streams: ProcessStdio,
    pub(crate) init: BorrowedFd<'a>,
    pub(crate) cgroup: Option<&'a CgroupTarget>,
}

/// The standard streams of a process.
#[derive(Debug)]
pub(crate) enum ProcessStdio {
    /// Standard input, output and error.
    Files([OwnedFd; 3]),
    /// A terminal, which the runtime creates.
    Terminal,
}

/// A process that is being started.
pub(crate) trait Startup: Debug {
    /// Readable when [`Self::advance`] may return a step.
    fn watch(&self) -> Option<BorrowedFd<'_>>;

    /// The program whose exit must be passed to [`Self::helper_ended`].
    fn helper(&self) -> Option<i32>;

    /// The program exited.
    fn helper_ended(&mut self, ended: ProcessExit);

    /// The next step; call it until it returns `None`.
    fn advance(&mut self) -> Option<StartupStep>;

    /// Lets the process execute its program.
    fn go(&mut self) -> Result<(), CallFailure>;
}

/// A step of a start.
#[derive(Debug)]
pub(crate) enum StartupStep {
    /// The process exists. Without a pidfd, a process of an external runtime that has exited
    /// already.
    Process(i32, Option<OwnedFd>),
    /// It is set up, and waits for [`Startup::go`].
    Created(Option<OwnedFd>, Vec<String>),
    /// The program runs.
    Started,
    /// The start failed, with the reason.
    Failed(String),
}

/// The selected runtime.
pub(crate) fn choose(what: &CreateContainer) -> Box<dyn OciRuntime> {
    match &what.runtime {
        RuntimeChoice::Embedded => Box::new(Embedded::new(what)),
        RuntimeChoice::External(external) => Box::new(External::new(what, external.clone())),
    }
}

/// Reads `config.json` of a bundle.
pub(crate) fn read_spec(bundle: &Path) -> Result<Spec, CallFailure> {
    let path = bundle.join("config.json");
    let text = std::fs::read(&path).map_err(|error| {
        CallFailure::new(
            FailureKind::Host,
            format!("cannot read {}: {error}", path.display()),
        )
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        CallFailure::new(
            FailureKind::Invalid,
            format!(
                "{} is not a valid OCI specification: {error}",
                path.display()
            ),
        )
    })
}

/// A failure of the host at a step.
pub(crate) fn host_failure(step: &str, error: impl Error + 'static) -> CallFailure {
    let text = format!("{step}: {}", ErrorChain(&error));
    CallFailure::new(FailureKind::Host, text)
}
