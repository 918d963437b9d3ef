//! One private containerd: its own directories, socket, network, cgroups and images.

pub(crate) mod config;
mod import;
pub(crate) mod setup;

use std::ffi::OsString;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use anyhow::Result;

use crate::agent::AgentRuntime;
use crate::command::stdout_of;
use crate::daemon::Daemon;
use crate::packages::containerd::Binaries;
pub use crate::packages::line::Line;
use crate::scratch::Scratch;
use crate::scratch::guard::ScratchGuard;
use crate::{packages, sweep};

/// The containerd namespace of the CRI plugin.
const NAMESPACE: &str = "k8s.io";
/// The network plugins that pods use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPorts {
    /// The bridge, and host ports by the plugin `portmap`.
    Mapped,
    /// The bridge only.
    None,
}

/// A running private containerd.
#[derive(Debug)]
pub struct Containerd {
    daemon: Daemon,
    binaries: Binaries,
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
        // From here on, dropping the value removes what was created so far.
        let scratch = ScratchGuard::create()?;
        setup::write_files(&scratch, binaries.major(), host_ports)?;
        let configuration = scratch.dir().join(config::FILE);
        let arguments = vec!["--config".into(), configuration.into()];
        let containerd = Self {
            daemon: Daemon::new(scratch, "containerd", binaries.bin.clone(), arguments),
            binaries,
        };
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

    /// Runs `ctr` in the CRI's namespace; returns its standard output.
    ///
    /// # Errors
    /// It fails; the message contains its output.
    pub fn ctr(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.scratch().command(self.binaries.bin.join("ctr"));
        command
            .arg("--address")
            .arg(self.socket())
            .args(["--namespace", NAMESPACE]);
        stdout_of(command.args(arguments))
    }

    /// Stops containerd and starts it again; its containers continue.
    ///
    /// # Errors
    /// As [`Daemon::halt`] and [`Daemon::resume`].
    pub fn restart(&self) -> Result<()> {
        self.halt()?;
        self.resume()
    }

    /// Removes everything of this instance now, and reports failures.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<()> {
        self.daemon.remove()
    }
}

impl Deref for Containerd {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl AgentRuntime for Containerd {
    fn scratch(&self) -> &Scratch {
        self.daemon.scratch()
    }

    fn agent_flags(&self) -> Vec<OsString> {
        self.daemon.agent_flags()
    }

    fn runtime_log(&self) -> Option<PathBuf> {
        self.daemon.runtime_log()
    }
}
