//! `rubelet runtime serve`: the embedded runtime as a process of its own.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::Embedded;
use crate::agent::binary;
use crate::agent::process::Process;
use crate::{CriTruth, Scratch, report};

/// How long a start may take on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an orderly end may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

impl Embedded {
    /// What serves the CRI on the socket of these surroundings.
    fn process(&self, program: &Path) -> Process {
        let mut arguments = vec!["runtime".into(), "serve".into(), "--listen".into()];
        arguments.push(self.endpoint().into());
        arguments.extend(self.flags());
        Process {
            scratch: self.scratch.clone(),
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            log: self.scratch.dir().join("runtime.log"),
            child: None,
            started_at: None,
            boot_id: None,
        }
    }

    /// Runs the runtime, but no agent, while `work` asks it things.
    ///
    /// # Errors
    /// When it isn't ready within a minute, or doesn't end.
    pub fn served<T>(&self, work: impl FnOnce(&CriTruth) -> T) -> Result<T> {
        let mut process = self.process(&self.program);
        process.start()?;
        let truth = self.truth()?;
        truth.wait_ready(START_TIMEOUT)?;
        let done = work(&truth);
        process.terminate(STOP_TIMEOUT)?;
        Ok(done)
    }
}

/// A running `rubelet runtime serve`. When the value is dropped, everything of it is removed.
#[derive(Debug)]
pub struct Served {
    process: Mutex<Process>,
    surroundings: Embedded,
}

impl Served {
    /// Starts one, with the images of [`crate::images`].
    ///
    /// # Errors
    /// When something can't be installed, or the runtime isn't ready within a minute; the message
    /// holds the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_in(Embedded::start()?, &binary()?)
    }

    /// Starts `program` in surroundings that are there.
    ///
    /// # Errors
    /// As [`Served::start`].
    pub fn start_in(surroundings: Embedded, program: &Path) -> Result<Self> {
        let served = Self::prepare(surroundings, program);
        served.resume()?;
        Ok(served)
    }

    /// What [`Served::resume`] will start.
    #[must_use]
    pub fn prepare(surroundings: Embedded, program: &Path) -> Self {
        let process = surroundings.process(program);
        Self {
            process: Mutex::new(process),
            surroundings,
        }
    }

    /// The folders, the images and the name of the instance.
    #[must_use]
    pub fn surroundings(&self) -> &Embedded {
        &self.surroundings
    }

    /// The private folder and name of this instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        self.surroundings.scratch()
    }

    /// The process that runs the runtime; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process().pid()
    }

    /// What the runtime itself knows of pods and containers.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        self.surroundings.truth()
    }

    /// Starts the runtime unless it runs, and waits until it is ready.
    ///
    /// # Errors
    /// When it isn't ready within a minute; the message holds the end of its log.
    pub fn resume(&self) -> Result<()> {
        {
            let mut process = self.process();
            if process.pid().is_none() || process.exit_status()?.is_some() {
                process.child = None;
                process.start()?;
            }
        }
        let ready = self
            .truth()
            .and_then(|truth| truth.wait_ready(START_TIMEOUT));
        ready.map_err(|error| {
            let log = self.log_tail();
            anyhow!("the runtime is not ready: {error:#}\n--- end of its log\n{log}")
        })
    }

    /// Asks the runtime to end and waits for that; its containers go on.
    ///
    /// # Errors
    /// When it doesn't run, or doesn't end.
    pub fn halt(&self) -> Result<()> {
        self.process().terminate(STOP_TIMEOUT).map(drop)
    }

    /// Kills the runtime's process, not its supervisors; its containers go on.
    ///
    /// # Errors
    /// When it doesn't run.
    pub fn kill9(&self) -> Result<()> {
        self.process().kill9()
    }

    /// Ends everything at once, as when the machine loses its power. What [`Served::resume`] starts
    /// next finds another boot.
    ///
    /// # Errors
    /// When something doesn't end.
    pub fn lose_power(&self) -> Result<()> {
        self.kill9()?;
        self.process().boot_id = Some(self.surroundings.lose_power()?);
        Ok(())
    }

    /// Its log file.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.process().log.clone()
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        report::tail(&self.log_path(), 30)
    }

    /// Removes everything of this instance now, and tells what failed.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(mut self) -> Result<()> {
        self.end();
        self.surroundings.remove_all()
    }

    /// Kills the child, which has to be waited for; what else belongs to the instance is found by
    /// its name.
    fn end(&self) {
        let mut process = self.process();
        if process.pid().is_some()
            && let Err(error) = process.kill9()
        {
            report::say(&format!("{error:#}"));
        }
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        // A test that panicked must not keep its instance from being removed.
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report::say(&format!(
                "--- end of the runtime's log\n{}",
                self.log_tail()
            ));
        }
        self.end();
    }
}
