//! A runtime that is a daemon: its process, its socket and its private directory.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::process::Signal;

use crate::agent::{AgentRuntime, endpoint_flags};
use crate::scratch::Scratch;
use crate::scratch::guard::ScratchGuard;
use crate::{CriTruth, proc, report, wait};

/// The file name of the socket that the daemon listens on.
pub(crate) const SOCKET: &str = "c.sock";
/// Timeout of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a graceful stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The daemon of a runtime, private to one test. When the value is dropped, everything of it is removed: processes and
/// containers, mounts, cgroups, network and directory.
#[derive(Debug)]
pub struct Daemon {
    name: &'static str,
    bin: PathBuf,
    arguments: Vec<OsString>,
    child: Mutex<Option<Child>>,
    // Dropped after the process was killed.
    scratch: ScratchGuard,
}

impl Daemon {
    /// The program of this name in the directory `bin`. It is not started.
    pub(crate) fn new(
        scratch: ScratchGuard,
        name: &'static str,
        bin: PathBuf,
        arguments: Vec<OsString>,
    ) -> Self {
        Self {
            name,
            bin,
            arguments,
            child: Mutex::new(None),
            scratch,
        }
    }

    /// The private directory and name of this instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scratch.dir().join(SOCKET)
    }

    /// Its socket as a CRI endpoint, `unix:///…`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// The runtime's own state of pods and containers.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        CriTruth::new(&self.endpoint())
    }

    /// Its log file.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.scratch.dir().join(format!("{}.log", self.name))
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self) -> String {
        report::tail(&self.log_path(), 30)
    }

    /// The process ID of the daemon itself; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.child().as_ref().map(Child::id)
    }

    /// Starts the daemon, again after [`Daemon::halt`] or [`Daemon::kill9`], and waits until it is ready. Does nothing if
    /// it runs.
    ///
    /// # Errors
    /// It is not ready within a minute; the message contains the end of its log.
    pub fn resume(&self) -> Result<()> {
        self.start()?;
        let ready = self
            .truth()
            .and_then(|truth| truth.wait_ready(START_TIMEOUT));
        ready.map_err(|error| {
            let (name, log) = (self.name, self.log_tail());
            anyhow!("{name} is not ready: {error:#}\n--- end of its log\n{log}")
        })
    }

    /// Starts the process unless it runs. Does not wait for readiness.
    fn start(&self) -> Result<()> {
        let mut running = self.child();
        if let Some(child) = &mut *running
            && child.try_wait()?.is_none()
        {
            return Ok(());
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())?;
        // containerd finds its shim, and CNI plugins find iptables, in the PATH.
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.bin.display());
        let child = self
            .scratch
            .command(self.bin.join(self.name))
            .args(&self.arguments)
            .env("PATH", path)
            // Ctrl-C at a terminal must reach only the program that runs the test bed.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .spawn()
            .with_context(|| format!("cannot start {}", self.name))?;
        *running = Some(child);
        Ok(())
    }

    /// Stops the daemon gracefully; its containers continue.
    ///
    /// # Errors
    /// When it doesn't end.
    pub fn halt(&self) -> Result<()> {
        let Some(mut child) = self.child().take() else {
            return Ok(());
        };
        proc::signal(&child, Signal::TERM)?;
        wait::until(&format!("{} has ended", self.name), STOP_TIMEOUT, || {
            Ok(child.try_wait()?.map(drop))
        })
    }

    /// Kills the daemon; its containers continue.
    ///
    /// # Errors
    /// When it doesn't end.
    pub fn kill9(&self) -> Result<()> {
        let Some(mut child) = self.child().take() else {
            return Ok(());
        };
        let ended = child.kill().and_then(|()| child.wait());
        ended.with_context(|| format!("cannot kill {}", self.name))?;
        Ok(())
    }

    /// Removes everything of this instance now, and reports failures.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(mut self) -> Result<()> {
        let killed = self.kill9();
        killed.and(self.scratch.remove())
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        // The instance must be removed even after a panic.
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentRuntime for Daemon {
    fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    fn agent_flags(&self) -> Vec<OsString> {
        endpoint_flags(&self.endpoint())
    }

    fn runtime_log(&self) -> Option<PathBuf> {
        Some(self.log_path())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (name, log) = (self.name, self.log_tail());
            report::say(&format!("--- end of {name}'s log\n{log}"));
        }
        if let Err(error) = self.kill9() {
            report::say(&format!("{error:#}"));
        }
    }
}
