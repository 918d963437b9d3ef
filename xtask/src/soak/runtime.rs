//! The runtime behind the proxy: a separate process that can be killed and restarted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rubelet_testbed::agent::AgentRuntime;
use rubelet_testbed::containerd::HostPorts;
use rubelet_testbed::embedded::Served;
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::{Containerd, CriTruth, Embedded, Scratch};

/// A running one. Everything of it is removed when the value is dropped.
pub(super) enum Runtime {
    Containerd(Containerd),
    /// `rubelet runtime serve`.
    Embedded(Served),
}

impl Runtime {
    /// Starts one with images; `program` is the `rubelet` that serves the embedded one.
    pub(super) fn start(kind: Kind, program: &Path) -> Result<Self> {
        Ok(match kind {
            Kind::Containerd => Self::Containerd(Containerd::start_with(HostPorts::None)?),
            Kind::Embedded => {
                let environment = Embedded::start_program(program)?;
                Self::Embedded(Served::start_in(environment, program)?)
            }
            Kind::Crio => bail!("a soak runs on containerd or on the embedded runtime"),
        })
    }

    /// The path of its socket.
    pub(super) fn socket(&self) -> PathBuf {
        match self {
            Self::Containerd(runtime) => runtime.socket(),
            Self::Embedded(runtime) => runtime.environment().socket(),
        }
    }

    /// The runtime's own state of pods and containers, not through the proxy.
    pub(super) fn truth(&self) -> Result<CriTruth> {
        match self {
            Self::Containerd(runtime) => runtime.truth(),
            Self::Embedded(runtime) => runtime.truth(),
        }
    }

    /// Kills it; its containers continue.
    pub(super) fn kill9(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.kill9(),
            Self::Embedded(runtime) => runtime.kill9(),
        }
    }

    /// Stops it gracefully; its containers continue.
    pub(super) fn halt(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.halt(),
            Self::Embedded(runtime) => runtime.halt(),
        }
    }

    /// Starts it again and waits until it is ready.
    pub(super) fn resume(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.resume(),
            Self::Embedded(runtime) => runtime.resume(),
        }
    }

    pub(super) fn log_path(&self) -> PathBuf {
        match self {
            Self::Containerd(runtime) => runtime.log_path(),
            Self::Embedded(runtime) => runtime.log_path(),
        }
    }

    /// Removes everything of it now; the error lists failures.
    pub(super) fn remove(self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.remove(),
            Self::Embedded(runtime) => runtime.remove(),
        }
    }
}

impl AgentRuntime for Runtime {
    fn scratch(&self) -> &Scratch {
        match self {
            Self::Containerd(runtime) => runtime.scratch(),
            Self::Embedded(runtime) => runtime.scratch(),
        }
    }

    fn agent_flags(&self) -> Vec<OsString> {
        let endpoint = format!("unix://{}", self.socket().display());
        vec!["--container-runtime-endpoint".into(), endpoint.into()]
    }

    fn runtime_log(&self) -> Option<PathBuf> {
        Some(self.log_path())
    }
}
