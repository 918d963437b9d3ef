//! Why a copy failed.

use std::io;

use rustix::io::Errno;

/// Why a copy failed. Paths are as the user gave them, or relative to the copied tree.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// There is no such file.
    #[error("{0:?}: no such file or directory")]
    NotFound(String),
    /// A system call failed.
    #[error("cannot {step} {path:?}")]
    Io {
        /// The failed operation.
        step: &'static str,
        /// Its path.
        path: String,
        /// The error.
        source: io::Error,
    },
    /// An entry of the stream is rejected.
    #[error("{path:?} in the stream is refused: {why}")]
    Refused {
        /// The name of the entry.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// An existing file can't be replaced.
    #[error("{path:?}: {why}")]
    Conflict {
        /// The file.
        path: String,
        /// The reason.
        why: &'static str,
    },
    /// The stream is truncated, or not a tar stream.
    #[error("the tar stream is broken")]
    Stream(#[source] io::Error),
    /// The other side could not read everything.
    #[error("{0}")]
    Sender(String),
    /// The container is gone.
    #[error("the container does not run")]
    NotRunning,
}

impl FilesError {
    pub(crate) fn io(step: &'static str, path: &[u8], error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::NotFound(shown(path)),
            Errno::LOOP => Self::Conflict {
                path: shown(path),
                why: "a symbolic link is in the way, and nothing is written through one",
            },
            error => Self::Io {
                step,
                path: shown(path),
                source: error.into(),
            },
        }
    }
}

/// A path for messages.
pub(crate) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
