//! Which runtime a test runs on: one suite, two runtimes.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::{Containerd, CriTruth, Embedded, Scratch};

/// The environment variable that chooses the runtime.
pub const VARIABLE: &str = "RUBELET_TEST_RUNTIME";

/// The runtimes that the suite knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A private containerd, in processes of its own.
    Containerd,
    /// The runtime inside of `rubelet` itself.
    Embedded,
}

impl Kind {
    /// What the variable [`VARIABLE`] asks for; containerd when it isn't set.
    ///
    /// # Errors
    /// When it names no runtime.
    pub fn wanted() -> Result<Self> {
        match std::env::var(VARIABLE).ok().as_deref() {
            None | Some("" | "containerd") => Ok(Self::Containerd),
            Some("embedded") => Ok(Self::Embedded),
            Some(other) => {
                bail!("{VARIABLE} is `{other}`; the runtimes are `containerd` and `embedded`")
            }
        }
    }

    /// The word by which [`VARIABLE`] asks for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Containerd => "containerd",
            Self::Embedded => "embedded",
        }
    }
}

/// A runtime that an agent can be started on.
pub trait AgentRuntime {
    /// The folder and name of the instance.
    fn scratch(&self) -> &Scratch;

    /// The flags of `rubelet run` that make an agent use it.
    fn agent_flags(&self) -> Vec<OsString>;

    /// The log of a process of its own; `None` when it lives in the agent.
    fn runtime_log(&self) -> Option<PathBuf>;
}

/// The runtime that [`VARIABLE`] asks for, private to one test. When the value is dropped,
/// everything of it is removed.
#[derive(Debug)]
pub enum TestRuntime {
    /// A private containerd.
    Containerd(Containerd),
    /// What an agent needs to run pods by itself.
    Embedded(Embedded),
}

impl TestRuntime {
    /// Makes one, with the images of [`crate::images`].
    ///
    /// # Errors
    /// When something of it can't be installed or started.
    pub fn start() -> Result<Self> {
        Ok(match Kind::wanted()? {
            Kind::Containerd => Containerd::start()?.into(),
            Kind::Embedded => Embedded::start()?.into(),
        })
    }

    /// Which one it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Containerd(_) => Kind::Containerd,
            Self::Embedded(_) => Kind::Embedded,
        }
    }

    /// The folder and name of the instance.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        match self {
            Self::Containerd(runtime) => runtime.scratch(),
            Self::Embedded(runtime) => runtime.scratch(),
        }
    }

    /// Its socket as a CRI endpoint. The embedded runtime answers there while its agent runs.
    #[must_use]
    pub fn endpoint(&self) -> String {
        match self {
            Self::Containerd(runtime) => runtime.endpoint(),
            Self::Embedded(runtime) => runtime.endpoint(),
        }
    }

    /// What this runtime itself knows of pods and containers.
    ///
    /// # Errors
    /// When no client can be made.
    pub fn truth(&self) -> Result<CriTruth> {
        CriTruth::new(&self.endpoint())
    }

    /// Asks the runtime while no agent runs. The embedded one is started for that by itself, and
    /// ends after it.
    ///
    /// # Errors
    /// When it can't be started or doesn't end.
    pub fn without_agent<T>(&self, work: impl FnOnce(&CriTruth) -> T) -> Result<T> {
        match self {
            Self::Containerd(runtime) => Ok(work(&runtime.truth()?)),
            Self::Embedded(runtime) => runtime.served(work),
        }
    }

    /// The containerd, for what only that can do.
    ///
    /// # Errors
    /// When the test runs on another runtime.
    pub fn containerd(&self) -> Result<&Containerd> {
        match self {
            Self::Containerd(runtime) => Some(runtime),
            Self::Embedded(_) => None,
        }
        .context("this test runs on no containerd")
    }

    /// Removes everything of this instance now, and tells what failed.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<()> {
        match self {
            Self::Containerd(runtime) => runtime.remove(),
            Self::Embedded(runtime) => runtime.remove(),
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
        }
    }

    fn runtime_log(&self) -> Option<PathBuf> {
        match self {
            Self::Containerd(runtime) => runtime.runtime_log(),
            Self::Embedded(runtime) => runtime.runtime_log(),
        }
    }
}
