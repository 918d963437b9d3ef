//! How a command ends when it doesn't end well.

/// Why a command stopped.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line makes no sense: exit code 2.
    Usage(String),
    /// Something went wrong: exit code 1.
    Error(anyhow::Error),
    /// Nobody reads stdout any more, which is no error.
    ReaderGone,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
