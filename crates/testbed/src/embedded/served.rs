//! `rubelet runtime serve`: the embedded runtime as a separate process.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::Embedded;
use crate::agent::binary;
use crate::agent::process::Process;
use crate::{CriTruth, Scratch, report};

/// Timeout of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a graceful stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

impl Embedded {
    /// The process that serves the CRI on the socket of this environment.
    fn process(&self, program: &Path) -> Process {
        let mut arguments = vec!["runtime".into(), "serve".into(), "--listen".into()];
        arguments.push(self.endpoint().into());
        arguments.extend(["--v".into(), "4".into()]);
        arguments.extend(["--cgroup-driver".into(), self.driver.name().into()]);
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

    /// Runs the runtime without an agent while `work` queries it.
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
    environment: Embedded,
}

impl Served {
    /// Starts one, with the images of [`crate::images`].
    ///
    /// # Errors
    /// When something can't be installed, or the runtime isn't ready within a minute; the message
    /// contains the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_in(Embedded::start()?, &binary()?)
    }

    /// Starts `program` in an environment that exists.
    ///
    /// # Errors
    /// As [`Served::start`].
    pub fn start_in(environment: Embedded, program: &Path) -> Result<Self> {
        let served = Self::prepare(environment, program);
        served.resume()?;
        Ok(served)
    }

    /// The command that [`Served::resume`] will start.
    #[must_use]
    pub fn prepare(environment: Embedded, program: &Path) -> Self {
        let process = environment.process(program);
        Self {
            process: Mutex::new(process),
            environment,
        }
    }

    /// The directories, the images and the name of the instance.
    #[must_use]
    pub fn environment(&self) -> &Embedded {
        &self.environment
    }

    /// The private directory and name of this instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        self.environment.scratch()
    }

    /// The process that runs the runtime; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process().pid()
    }

    /// The runtime's own state of pods and containers.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        self.environment.truth()
    }

    /// Starts the runtime unless it runs, and waits until it is ready.
    ///
    /// # Errors
    /// When it isn't ready within a minute; the message contains the end of its log.
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

    /// Sends SIGTERM to the runtime and waits for its exit; its containers continue.
    ///
    /// # Errors
    /// When it doesn't run, or doesn't end.
    pub fn halt(&self) -> Result<()> {
        self.process().terminate(STOP_TIMEOUT).map(drop)
    }

    /// Kills the runtime's process, not its shims; its containers continue.
    ///
    /// # Errors
    /// When it doesn't run.
    pub fn kill9(&self) -> Result<()> {
        self.process().kill9()
    }

    /// Kills everything at once, as in a power loss. The next [`Served::resume`] sees another boot
    /// ID.
    ///
    /// # Errors
    /// When something doesn't end.
    pub fn lose_power(&self) -> Result<()> {
        self.kill9()?;
        self.process().boot_id = Some(self.environment.lose_power()?);
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

    /// Removes everything of this instance now, and reports failures.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(mut self) -> Result<()> {
        self.end();
        self.environment.scratch.remove()
    }

    /// Kills and reaps the child; everything else of the instance is found by its name.
    fn end(&self) {
        let mut process = self.process();
        if process.pid().is_some()
            && let Err(error) = process.kill9()
        {
            report::say(&format!("{error:#}"));
        }
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        // The instance must be removed even after a panic.
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
