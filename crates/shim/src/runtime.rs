//! Who makes containers: one trait, the embedded runtime and external programs. Nothing here waits:
//! what takes time is watched by the loop.

mod command;
mod console;
mod embedded;
mod external;
mod overlay;

use std::{
    error::Error,
    fmt::Debug,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

use rubelet_base::ErrorChain;
use rubelet_container::Joined;
use rubelet_host::cgroup::CgroupTarget;
use rubelet_oci::{Process, Spec};

use crate::protocol::{CreateContainer, Failure, FailureKind, RuntimeChoice};

pub(crate) use command::Ended;
pub(crate) use embedded::Embedded;
pub(crate) use external::External;

/// Makes, signals and removes one container.
pub(crate) trait OciRuntime: Debug {
    /// Begins to make the container.
    fn create(&mut self, order: CreateOrder<'_>) -> Result<Box<dyn Startup>, Failure>;

    /// Begins to start one more process in it.
    fn exec(&mut self, order: ExecOrder<'_>) -> Result<Box<dyn Startup>, Failure>;

    /// Sends a signal to its init.
    fn kill(&mut self, init: BorrowedFd<'_>, signal: i32) -> Result<Progress, Failure>;

    /// Removes what the runtime keeps of the container; kills it if it runs.
    fn delete(&mut self) -> Result<Progress, Failure>;

    /// To be called when [`Self::delete`] has ended.
    fn deleted(&mut self) -> Result<(), Failure>;

    /// What the program said that ended, for people.
    fn complaint(&self, ended: Ended) -> String;
}

/// How far something is that was asked of a runtime.
#[derive(Debug)]
pub(crate) enum Progress {
    /// It is done.
    Done,
    /// A program does it; its end tells.
    Helper(i32),
}

/// What a container is made from.
#[derive(Debug)]
pub(crate) struct CreateOrder<'a> {
    pub(crate) what: &'a CreateContainer,
    pub(crate) spec: &'a Spec,
    pub(crate) streams: Streams,
    pub(crate) namespaces: Joined<'a>,
    pub(crate) cgroup: Option<&'a CgroupTarget>,
}

/// What one more process is made from.
#[derive(Debug)]
pub(crate) struct ExecOrder<'a> {
    pub(crate) exec_id: &'a str,
    pub(crate) process: &'a Process,
    pub(crate) streams: Streams,
    pub(crate) init: BorrowedFd<'a>,
    pub(crate) cgroup: Option<&'a CgroupTarget>,
}

/// The standard streams that a process gets.
#[derive(Debug)]
pub(crate) enum Streams {
    /// Standard input, output and error.
    Files([OwnedFd; 3]),
    /// A terminal, which the runtime makes.
    Terminal,
}

/// A process on its way to its program.
pub(crate) trait Startup: Debug {
    /// Readable when [`Self::advance`] may have something to tell.
    fn watch(&self) -> Option<BorrowedFd<'_>>;

    /// The program whose end must be told by [`Self::helper_ended`].
    fn helper(&self) -> Option<i32>;

    /// The program ended.
    fn helper_ended(&mut self, ended: Ended);

    /// What happened since; to be called until there is nothing.
    fn advance(&mut self) -> Option<Step>;

    /// Lets the process execute its program.
    fn go(&mut self) -> Result<(), Failure>;
}

/// One step on the way to a program.
#[derive(Debug)]
pub(crate) enum Step {
    /// The process is known.
    /// A process of an external runtime without a handle has ended already.
    Process(i32, Option<OwnedFd>),
    /// It is set up, and waits for [`Startup::go`].
    Created(Option<OwnedFd>, Vec<String>),
    /// The program runs.
    Started,
    /// It came to nothing, and why.
    Failed(String),
}

/// The runtime of that choice.
pub(crate) fn choose(what: &CreateContainer) -> Box<dyn OciRuntime> {
    match &what.runtime {
        RuntimeChoice::Embedded => Box::new(Embedded::new(what)),
        RuntimeChoice::External(external) => Box::new(External::new(what, external.clone())),
    }
}

/// Reads `config.json` of a bundle.
pub(crate) fn read_spec(bundle: &Path) -> Result<Spec, Failure> {
    let path = bundle.join("config.json");
    let text = std::fs::read(&path).map_err(|error| {
        Failure::new(
            FailureKind::Host,
            format!("cannot read {}: {error}", path.display()),
        )
    })?;
    serde_json::from_slice(&text).map_err(|error| {
        Failure::new(
            FailureKind::Invalid,
            format!("{} is no OCI specification: {error}", path.display()),
        )
    })
}

/// A failure of the host at a step.
pub(crate) fn host_failure(step: &str, error: impl Error + 'static) -> Failure {
    let text = format!("{step}: {}", ErrorChain(&error));
    Failure::new(FailureKind::Host, text)
}
