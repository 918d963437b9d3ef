//! The error of a call to a plugin.

use std::{io, path::PathBuf, time::Duration};

/// Why a plugin could not be run, or what it failed with.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// None of the plugin directories has the program.
    #[error("cannot find the CNI plugin {plugin} in {searched}: install it there")]
    NotFound {
        /// The plugin's type.
        plugin: String,
        /// The directories.
        searched: String,
    },
    /// The program can't be executed.
    #[error("cannot run the CNI plugin {}", program.display())]
    Run {
        /// The plugin's program.
        program: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The plugin was killed at its deadline.
    #[error("the CNI plugin {plugin} did not finish {verb} within {} s and was killed", deadline.as_secs_f32())]
    Deadline {
        /// The plugin's type.
        plugin: String,
        /// `CNI_COMMAND`.
        verb: &'static str,
        /// The deadline.
        deadline: Duration,
    },
    /// The plugin reported an error.
    #[error("the CNI plugin {plugin} failed ({verb}): {message}")]
    Failed {
        /// The plugin's type.
        plugin: String,
        /// `CNI_COMMAND`.
        verb: &'static str,
        /// The plugin's message.
        message: String,
    },
    /// The plugin succeeded with a result that can't be used.
    #[error("the CNI plugin {plugin} returned an invalid result: {reason}")]
    InvalidResult {
        /// The plugin's type.
        plugin: String,
        /// The error in the result.
        reason: String,
    },
}
