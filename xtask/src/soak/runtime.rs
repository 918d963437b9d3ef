//! The runtime behind the proxy: a process of its own, that can be killed and restarted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rubelet_testbed::containerd::HostPorts;
use rubelet_testbed::embedded::Served;
use rubelet_testbed::runtime::{AgentRuntime, Kind};
use rubelet_testbed::{Containerd, CriTruth, Embedded, Scratch};

/// A running one. When the value is dropped, everything of it is removed.
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
                let surroundings = Embedded::start_program(program)?;
                Self::Embedded(Served::start_in(surroundings, program)?)
            }
        })
    }

    /// The path of its socket.
    pub(super) fn socket(&self) -> PathBuf {
        match self {
            Self::Containerd(runtime) => runtime.socket(),
            Self::Embedded(runtime) => runtime.surroundings().socket(),
        }
    }

    /// What it knows of pods and containers, asked past the proxy.
    pub(super) fn truth(&self) -> Result<CriTruth> {
        match self {
            Self::Containerd(runtime) => runtime.truth(),
            Self::Embedded(runtime) => runtime.truth(),
        }
    }

    /// Kills it; its containers go on.
    pub(super) fn kill9(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.kill9(),
            Self::Embedded(runtime) => runtime.kill9(),
        }
    }

    /// Stops it in an orderly way; its containers go on.
    pub(super) fn halt(&self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.halt(),
            Self::Embedded(runtime) => runtime.halt(),
        }
    }

    /// Starts it again and waits until it answers.
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

    /// Removes everything of it now; an error tells what could not be.
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
