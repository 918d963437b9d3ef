//! The steps of a process: its system calls with external effects. The program `rubelet-steps`
//! counts them and makes one of them fail, or kills the process before it; repeating a scenario for
//! each of its steps shows the result of a fault at any of them. For x86-64 only.

mod calls;
mod tracer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::wait;

pub use tracer::trace;

/// Timeout of the tracer's start.
const ATTACHING: Duration = Duration::from_secs(60);
/// Its message when it is ready.
const READY: &str = "ready";
/// Prefix of the line that reports the fault.
const FAULT: &str = "fault";

/// The processes whose steps are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The process that is traced.
    Process,
    /// Its children: the shims of pods.
    Child,
    /// The children of those, until they exec another program: containers being started.
    Grandchild,
}

/// The fault at the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The victim is killed before it.
    Kill,
    /// It fails as on a full disk, if it needs space.
    NoSpace,
}

/// The step of the fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaultStep {
    /// No fault; the steps are listed.
    None,
    /// A number, from 1. The order of steps of different threads may differ between runs.
    Number(usize),
    /// The first step with this call on a path that contains this text.
    First {
        /// The name of the call in the journal.
        call: String,
        /// Part of the path.
        path: String,
    },
}

impl FaultStep {
    fn parse(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self::None);
        }
        match text.split_once(':') {
            Some((call, path)) => Some(Self::First {
                call: call.to_owned(),
                path: path.to_owned(),
            }),
            None => text.parse().ok().map(Self::Number),
        }
    }

    fn is(&self, number: usize, step: &str) -> bool {
        match self {
            Self::None => false,
            Self::Number(at) => number == *at,
            Self::First { call, path } => step
                .split_once(' ')
                .is_some_and(|(name, rest)| name == call && rest.contains(path)),
        }
    }
}

impl fmt::Display for FaultStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Number(number) => number.fmt(f),
            Self::First { call, path } => write!(f, "{call}:{path}"),
        }
    }
}

/// The fault and its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The processes whose steps are counted.
    pub victim: Victim,
    /// The fault.
    pub fault: Fault,
    /// The step.
    pub at: FaultStep,
}

impl Order {
    /// Parses the arguments of a command line.
    #[must_use]
    pub fn parse(victim: &str, fault: &str, at: &str) -> Option<Self> {
        Some(Self {
            victim: match victim {
                "process" => Victim::Process,
                "child" => Victim::Child,
                "grandchild" => Victim::Grandchild,
                _ => return None,
            },
            fault: match fault {
                "kill" => Fault::Kill,
                "no-space" => Fault::NoSpace,
                _ => return None,
            },
            at: FaultStep::parse(at)?,
        })
    }

    fn words(&self) -> [String; 3] {
        let victim = match self.victim {
            Victim::Process => "process",
            Victim::Child => "child",
            Victim::Grandchild => "grandchild",
        };
        let fault = match self.fault {
            Fault::Kill => "kill",
            Fault::NoSpace => "no-space",
        };
        [victim.into(), fault.into(), self.at.to_string()]
    }
}

/// A running tracer; when the value is dropped, the process continues without it.
#[derive(Debug)]
pub struct Tracer {
    child: Child,
    journal: PathBuf,
}

/// The result of a tracer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    /// The steps in order, one line each, without numbers and identifiers.
    pub steps: Vec<String>,
    /// The step at which the fault happened.
    pub fault: Option<String>,
}

impl Tracer {
    /// Starts `program`, the tracer, on a process, and waits until it is ready.
    ///
    /// # Errors
    /// When the process can't be traced.
    pub fn start(program: &Path, pid: u32, order: &Order, journal: &Path) -> Result<Self> {
        let file = std::fs::File::create(journal)?;
        let child = Command::new(program)
            .arg(pid.to_string())
            .args(order.words())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut tracer = Self {
            child,
            journal: journal.to_owned(),
        };
        wait::until("the tracer is there", ATTACHING, || {
            let text = std::fs::read_to_string(journal)?;
            // The first step may be the one with the fault, and end the process immediately.
            let is_there = text.lines().any(|line| line == READY);
            let has_ended = !is_there && tracer.child.try_wait()?.is_some();
            anyhow::ensure!(!has_ended, "it ended: {text}");
            Ok(is_there.then_some(()))
        })?;
        Ok(tracer)
    }

    /// Detaches from the process; returns the result.
    ///
    /// # Errors
    /// When the journal can't be read.
    pub fn stop(mut self) -> Result<Journal> {
        self.end();
        let text = std::fs::read_to_string(&self.journal)?;
        let mut journal = Journal::default();
        for line in text.lines() {
            match line.split_once(' ') {
                Some((FAULT, step)) => journal.fault = Some(step.to_owned()),
                Some(("step", step)) => journal.steps.push(step.to_owned()),
                _ => {}
            }
        }
        Ok(journal)
    }

    fn end(&mut self) {
        // It exits by itself if nothing is left to trace.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end();
    }
}
