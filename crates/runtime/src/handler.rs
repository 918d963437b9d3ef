//! Runtime handlers: the OCI runtimes that create the containers of a pod.

use std::path::PathBuf;

use rubelet_cgroup_plan::CgroupDriver;
use rubelet_shim::protocol::{ExternalRuntime, RuntimeChoice};

use crate::{
    error::{Result, RuntimeError},
    executable::is_executable,
    layout::Layout,
    settings::RuntimeSettings,
};

/// The name of the embedded handler, besides the empty name.
pub(crate) const EMBEDDED: &str = "rubelet";

/// An OCI runtime that creates the containers of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Handler {
    /// The embedded runtime.
    Embedded,
    /// A program with the command line of `runc`.
    External {
        /// Name of the handler.
        name: String,
        /// The program.
        binary: PathBuf,
    },
}

impl Handler {
    /// The handler of that name.
    pub(crate) fn of(settings: &RuntimeSettings, name: &str) -> Result<Self> {
        if matches!(name, "" | EMBEDDED) {
            return Ok(Self::Embedded);
        }
        let Some(binary) = settings.handlers.get(name) else {
            return Err(RuntimeError::invalid(format!(
                "no runtime for {name:?} is configured; configured runtimes: {}",
                names(settings).join(", ")
            )));
        };
        if !is_executable(binary) {
            return Err(RuntimeError::state(format!(
                "the runtime handler {name:?} needs {}, which is not an executable file",
                binary.display()
            )));
        }
        Ok(Self::External {
            name: name.to_owned(),
            binary: binary.clone(),
        })
    }

    /// The form that the shim takes.
    pub(crate) fn choice(&self, layout: &Layout, driver: CgroupDriver) -> RuntimeChoice {
        match self {
            Self::Embedded => RuntimeChoice::Embedded,
            Self::External { name, binary } => RuntimeChoice::External(ExternalRuntime {
                binary: binary.clone(),
                root: layout.run().join("oci").join(name),
                systemd_cgroup: driver == CgroupDriver::Systemd,
            }),
        }
    }
}

/// All handlers that work, the default first.
pub(crate) fn names(settings: &RuntimeSettings) -> Vec<String> {
    let external = settings
        .handlers
        .iter()
        .filter(|(_, binary)| is_executable(binary))
        .map(|(name, _)| name.clone());
    [EMBEDDED.to_owned()].into_iter().chain(external).collect()
}
