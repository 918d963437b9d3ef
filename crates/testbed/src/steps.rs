//! The steps of a process: its system calls that change something outside of it. The program
//! `rubelet-steps` counts them and lets one of them fail, or kills the process before it; the same
//! life, begun again for each of its steps, shows what is left by a fault at any of them. For x86-64
//! only, whose registers and numbers of calls it knows.

mod calls;
mod tracer;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::wait;

pub use tracer::trace;

/// How long the tracer may take to be there.
const ATTACHING: Duration = Duration::from_secs(20);
/// What it says when it is there.
const READY: &str = "ready";
/// How a line begins that tells of the fault.
const FAULT: &str = "fault";

/// Whose steps count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The process that is traced.
    Process,
    /// Its children: the supervisors of pods.
    Child,
    /// The children of those, until they execute another program: containers on their way.
    Grandchild,
}

/// What happens at the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The victim is killed before it.
    Kill,
    /// It fails as on a disk without space, if it is one that needs space.
    NoSpace,
}

/// What is to happen when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Whose steps count.
    pub victim: Victim,
    /// What happens.
    pub fault: Fault,
    /// At which step, from 1; at 0 nothing happens, and the steps are counted.
    pub at: usize,
}

impl Order {
    /// From the words of a command line.
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
            at: at.parse().ok()?,
        })
    }

    fn words(self) -> [String; 3] {
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

/// A tracer at work; when the value is dropped, the process goes on without it.
#[derive(Debug)]
pub struct Tracer {
    child: Child,
    journal: PathBuf,
}

/// What a tracer saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    /// The steps in their order, one line each, without numbers and identifiers.
    pub steps: Vec<String>,
    /// The step at which the fault happened.
    pub fault: Option<String>,
}

impl Tracer {
    /// Starts `program`, the tracer, on a process, and waits until it counts.
    ///
    /// # Errors
    /// When the process can't be traced.
    pub fn start(program: &Path, pid: u32, order: Order, journal: &Path) -> Result<Self> {
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
            // The first step may be the one, and end it at once.
            let is_there = text.lines().any(|line| line == READY);
            let has_ended = !is_there && tracer.child.try_wait()?.is_some();
            anyhow::ensure!(!has_ended, "it ended: {text}");
            Ok(is_there.then_some(()))
        })?;
        Ok(tracer)
    }

    /// Lets the process go; what was seen.
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
        // It ends by itself when nothing is left to trace.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.end();
    }
}
