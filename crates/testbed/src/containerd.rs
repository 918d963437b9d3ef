//! One private containerd: its own directories, socket, network, cgroups and images.

mod config;
pub(crate) mod daemon;
mod import;
mod setup;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::agent::{AgentRuntime, endpoint_flags};
use crate::command::stdout_of;
use crate::packages::containerd::Binaries;
pub use crate::packages::line::Line;
use crate::scratch::Scratch;
use crate::scratch::lock::HostLock;
use crate::{CriTruth, cleanup, packages, report, sweep};
use daemon::Daemon;

/// The containerd namespace of the CRI plugin.
const NAMESPACE: &str = "k8s.io";
/// Timeout of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of a graceful stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The network plugins that pods use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPorts {
    /// The bridge, and host ports by the plugin `portmap`.
    Mapped,
    /// The bridge only.
    None,
}

/// A running private containerd. When the value is dropped, everything of it is removed: processes
/// and containers, mounts, cgroups, network and directory.
#[derive(Debug)]
pub struct Containerd {
    scratch: Scratch,
    binaries: Binaries,
    daemon: Mutex<Daemon>,
    removed: bool,
}

impl Containerd {
    /// Starts one, with the images of [`crate::images`] imported. Installs missing packages, and first
    /// removes the leftovers of killed runs.
    ///
    /// # Errors
    /// A package can't be installed, or containerd is not ready within a minute; the message
    /// contains the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_with(HostPorts::Mapped)
    }

    /// As [`Containerd::start`], with a choice of network plugins.
    ///
    /// # Errors
    /// As [`Containerd::start`].
    pub fn start_with(host_ports: HostPorts) -> Result<Self> {
        packages::ensure()?;
        Self::start_binaries(packages::containerd::ensure()?, host_ports)
    }

    /// Like [`Containerd::start_with`], with the newest containerd of a given line, from the Debian
    /// suite that has it.
    ///
    /// # Errors
    /// As [`Containerd::start`].
    pub fn start_line(line: Line, host_ports: HostPorts) -> Result<Self> {
        packages::ensure()?;
        Self::start_binaries(packages::containerd::ensure_line(line)?, host_ports)
    }

    fn start_binaries(binaries: Binaries, host_ports: HostPorts) -> Result<Self> {
        sweep()?;
        let scratch = Scratch::create(&HostLock::take()?)?;
        // From here on, dropping the value removes what was created so far.
        let daemon = Mutex::new(Daemon::new(&scratch, &binaries));
        let containerd = Self {
            scratch,
            binaries,
            daemon,
            removed: false,
        };
        setup::write_files(&containerd.scratch, containerd.binaries.major(), host_ports)?;
        containerd.resume()?;
        import::images(&containerd)?;
        Ok(containerd)
    }

    /// One instance for all concurrent tests of this process; it is removed with the last of them.
    /// Not for tests that stop or kill it.
    ///
    /// # Errors
    /// As [`Containerd::start`].
    pub fn shared() -> Result<Arc<Self>> {
        static SHARED: Mutex<Weak<Containerd>> = Mutex::new(Weak::new());
        let mut shared = SHARED
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return Ok(running);
        }
        let started = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&started);
        Ok(started)
    }

    /// The private directory and name of this instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// The version of containerd, such as `2.1.9`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.binaries.version
    }

    /// The Debian suite of this containerd.
    #[must_use]
    pub fn suite(&self) -> &str {
        &self.binaries.suite
    }

    /// The path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.scratch.dir().join(config::SOCKET)
    }

    /// Its socket as a CRI endpoint, `unix:///…`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Its log file.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.scratch.dir().join("containerd.log")
    }

    /// The process id of containerd itself; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.daemon().pid()
    }

    /// Runs `ctr` in the CRI's namespace; returns its standard output.
    ///
    /// # Errors
    /// It fails; the message contains its output.
    pub fn ctr(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.scratch.command(self.binaries.bin.join("ctr"));
        command
            .arg("--address")
            .arg(self.socket())
            .args(["--namespace", NAMESPACE]);
        stdout_of(command.args(arguments))
    }

    /// The runtime's own state of pods and containers.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        CriTruth::new(&self.endpoint())
    }

    /// Stops containerd gracefully; its containers continue.
    ///
    /// # Errors
    /// When it doesn't end.
    pub fn halt(&self) -> Result<()> {
        self.daemon().halt(STOP_TIMEOUT)
    }

    /// Kills containerd; its containers continue.
    ///
    /// # Errors
    /// When it doesn't end.
    pub fn kill9(&self) -> Result<()> {
        self.daemon().kill9()
    }

    /// Starts containerd again after [`Containerd::halt`] or [`Containerd::kill9`] and waits until
    /// it is ready. Does nothing if it runs.
    ///
    /// # Errors
    /// It is not ready within a minute; the message contains the end of its log.
    pub fn resume(&self) -> Result<()> {
        self.daemon().start()?;
        let ready = self
            .truth()
            .and_then(|truth| truth.wait_ready(START_TIMEOUT));
        ready.map_err(|error| {
            let log = self.log_tail();
            anyhow!("containerd is not ready: {error:#}\n--- end of its log\n{log}")
        })
    }

    /// Stops containerd and starts it again; its containers continue.
    ///
    /// # Errors
    /// As [`Containerd::halt`] and [`Containerd::resume`].
    pub fn restart(&self) -> Result<()> {
        self.halt()?;
        self.resume()
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
        self.remove_all()
    }

    fn remove_all(&mut self) -> Result<()> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        let killed = self.daemon().kill9();
        let removed = cleanup::remove(&self.scratch, &HostLock::take()?);
        killed.and(removed)
    }

    fn daemon(&self) -> std::sync::MutexGuard<'_, Daemon> {
        // The instance must be removed even after a panic.
        self.daemon
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl AgentRuntime for Containerd {
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

impl Drop for Containerd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report::say(&format!("--- end of containerd's log\n{}", self.log_tail()));
        }
        if let Err(error) = self.remove_all() {
            report::say(&format!("{error:#}"));
        }
    }
}
