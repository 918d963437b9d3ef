//! Errors of commands, and their exit codes.

/// Why a command failed.
#[derive(Debug)]
pub(super) enum CommandError {
    /// The command line is invalid: exit code 2.
    Usage(String),
    /// Something went wrong: exit code 1.
    Error(anyhow::Error),
    /// The reader of stdout is gone, which is not an error.
    ReaderGone,
    /// The exit code of a command in a container, or of a signal; messages have been printed
    /// already.
    Exit(u8),
}

impl<E: Into<anyhow::Error>> From<E> for CommandError {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
