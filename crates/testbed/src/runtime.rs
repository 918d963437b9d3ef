//! The runtime of a test: one suite, two runtimes.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::agent::AgentRuntime;
use crate::cgroup_driver::CgroupDriver;
use crate::containerd::{HostPorts, Line};
use crate::crio::Crio;
use crate::{Containerd, CriTruth, Embedded, Scratch};

/// The environment variable that selects the runtime.
pub const VARIABLE: &str = "RUBELET_TEST_RUNTIME";
/// The value of [`VARIABLE`] for a containerd of the line before the newest, which many nodes have.
pub const CONTAINERD_1_7: &str = "containerd-1.7";

/// The runtimes that the suite supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A private containerd, in its own processes.
    Containerd,
    /// The runtime embedded in `rubelet`.
    Embedded,
    /// A private CRI-O, whose programs [`crate::crio::VARIABLE`] names.
    Crio,
}

impl Kind {
    /// The name of the cgroup of the container with this ID, in that of its pod.
    ///
    /// # Errors
    /// When the selected driver of cgroups is none.
    pub fn cgroup_name(self, container: &str) -> Result<String> {
        let driver = CgroupDriver::wanted()?;
        Ok(match (self, driver) {
            (Self::Containerd | Self::Embedded, CgroupDriver::Cgroupfs) => container.to_owned(),
            (Self::Crio, CgroupDriver::Cgroupfs) => format!("crio-{container}"),
            (Self::Containerd, CgroupDriver::Systemd) => {
                format!("cri-containerd-{container}.scope")
            }
            (Self::Embedded, CgroupDriver::Systemd) => format!("rubelet-{container}.scope"),
            (Self::Crio, CgroupDriver::Systemd) => format!("crio-{container}.scope"),
        })
    }

    /// The selection of the variable [`VARIABLE`]; containerd if it is not set.
    ///
    /// # Errors
    /// When it names no runtime.
    pub fn wanted() -> Result<Self> {
        match std::env::var(VARIABLE).ok().as_deref() {
            None | Some("" | "containerd" | CONTAINERD_1_7) => Ok(Self::Containerd),
            Some("embedded") => Ok(Self::Embedded),
            Some("crio") => Ok(Self::Crio),
            Some(other) => {
                bail!(
                    "{VARIABLE} is `{other}`; the runtimes are `containerd`, `{CONTAINERD_1_7}`, \
                     `embedded` and `crio`"
                )
            }
        }
    }

    /// The value of [`VARIABLE`] for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Embedded => "embedded",
            Self::Crio => "crio",
        }
    }
}

/// The runtime that [`VARIABLE`] selects, private to one test. Everything of it is removed when the
/// value is dropped.
#[derive(Debug)]
pub enum TestRuntime {
    /// A private containerd.
    Containerd(Containerd),
    /// The environment of an agent with the embedded runtime.
    Embedded(Embedded),
    /// A private CRI-O.
    Crio(Crio),
}

impl TestRuntime {
    /// Creates one, with the images of [`crate::images`].
    ///
    /// # Errors
    /// When something of it can't be installed or started.
    pub fn start() -> Result<Self> {
        Ok(match Kind::wanted()? {
            Kind::Containerd
                if std::env::var(VARIABLE).is_ok_and(|name| name == CONTAINERD_1_7) =>
            {
                Containerd::start_line(Line::V1_7, HostPorts::Mapped)?.into()
            }
            Kind::Containerd => Containerd::start()?.into(),
            Kind::Embedded => Embedded::start()?.into(),
            Kind::Crio => Self::Crio(Crio::start()?),
        })
    }

    /// The kind of this runtime.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Containerd(_) => Kind::Containerd,
            Self::Embedded(_) => Kind::Embedded,
            Self::Crio(_) => Kind::Crio,
        }
    }

    /// The directory and name of the instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        match self {
            Self::Containerd(runtime) => runtime.scratch(),
            Self::Embedded(runtime) => runtime.scratch(),
            Self::Crio(runtime) => runtime.scratch(),
        }
    }

    /// Its socket as a CRI endpoint. The embedded runtime answers there while its agent runs.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match self {
            Self::Containerd(runtime) => runtime.endpoint(),
            Self::Embedded(runtime) => runtime.endpoint(),
            Self::Crio(runtime) => runtime.endpoint(),
        }
    }

    /// The runtime's own state of pods and containers.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        CriTruth::new(&self.endpoint())
    }

    /// Queries the runtime while no agent runs. The embedded one is started and stopped for that.
    ///
    /// # Errors
    /// When it can't be started or doesn't end.
    pub fn without_agent<T>(&self, work: impl FnOnce(&CriTruth) -> T) -> Result<T> {
        match self {
            Self::Containerd(_) | Self::Crio(_) => Ok(work(&self.truth()?)),
            Self::Embedded(runtime) => runtime.served(work),
        }
    }

    /// The containerd, for its own features.
    ///
    /// # Errors
    /// When the test runs on another runtime.
    pub fn containerd(&self) -> Result<&Containerd> {
        match self {
            Self::Containerd(runtime) => Some(runtime),
            Self::Embedded(_) | Self::Crio(_) => None,
        }
        .context("this test is not running on containerd")
    }

    /// Removes everything of this instance now, and reports failures.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.remove(),
            Self::Embedded(runtime) => runtime.remove(),
            Self::Crio(runtime) => runtime.remove(),
        }
    }
}

impl From<Containerd> for TestRuntime {
    fn from(runtime: Containerd) -> Self {
        Self::Containerd(runtime)
    }
}

impl From<Embedded> for TestRuntime {
    fn from(runtime: Embedded) -> Self {
        Self::Embedded(runtime)
    }
}

impl AgentRuntime for TestRuntime {
    fn scratch(&self) -> &Scratch {
        self.scratch()
    }

    fn agent_flags(&self) -> Vec<OsString> {
        match self {
            Self::Containerd(runtime) => runtime.agent_flags(),
            Self::Embedded(runtime) => runtime.agent_flags(),
            Self::Crio(runtime) => runtime.agent_flags(),
        }
    }

    fn runtime_log(&self) -> Option<PathBuf> {
        match self {
            Self::Containerd(runtime) => runtime.runtime_log(),
            Self::Embedded(runtime) => runtime.runtime_log(),
            Self::Crio(runtime) => runtime.runtime_log(),
        }
    }
}
