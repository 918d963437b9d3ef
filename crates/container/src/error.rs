//! What fails in the calling process, before a child can report for itself.

use std::io;

use crate::step::reason;

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The specification asks for what can't be done, or a child told that it failed.
    #[error("{0}")]
    Refused(String),
    /// A step failed in this process; the text names the step and its object.
    #[error("{step}: {}", reason(source))]
    Step {
        /// What was tried.
        step: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
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
