//! Failures in the calling process, before a child can report its own.

use std::io;

use crate::step::{StepError, reason};

/// Why no process was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The specification requests something unsupported, or a child reported a failure.
    #[error("{0}")]
    Refused(String),
    /// A step failed in this process; the text names the step and its object.
    #[error("{step}: {}", reason(source))]
    Step {
        /// The step.
        step: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

impl From<StepError> for LaunchError {
    fn from(failure: StepError) -> Self {
        Self::Refused(failure.0)
    }
}

impl LaunchError {
    /// The failure of a step.
    pub(crate) fn step(step: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Step {
            step: step.into(),
            source: source.into(),
        }
    }
}
