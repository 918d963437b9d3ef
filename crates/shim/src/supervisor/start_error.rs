//! Errors at the start of a shim.

use std::{error::Error, ffi::OsString, path::PathBuf};

use rubelet_cgroup_plan::CgroupPathError;

/// Why a shim did not start. Its agent receives the text with its causes.
#[derive(Debug, thiserror::Error)]
pub(super) enum ShimStartError {
    /// An argument without its value.
    #[error("{} needs a value", .0.display())]
    MissingValue(OsString),
    /// An argument that no shim has.
    #[error("unknown argument of the shim: {}", .0.display())]
    UnknownArgument(OsString),
    /// The value of `--cgroup`.
    #[error(transparent)]
    Cgroup(#[from] CgroupPathError),
    /// No `--dir`.
    #[error("the shim needs --dir, the directory for its socket")]
    NoDirectory,
    /// The value of `--dir`.
    #[error("--dir {} is not an absolute path", .0.display())]
    RelativeDirectory(PathBuf),
    /// A step of the start failed.
    #[error("the shim cannot {step}")]
    Step {
        /// The step, as an infinitive.
        step: String,
        /// The error.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl ShimStartError {
    /// The error of a step.
    pub(super) fn step(
        step: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Step {
            step: step.into(),
            source: source.into(),
        }
    }
}
