//! A failed operation on a file or directory of logs.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A file system operation failed.
#[derive(Debug, thiserror::Error)]
#[error("{action} {}", path.display())]
pub struct FileError {
    /// The failed operation, such as `create log directory`.
    action: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl FileError {
    /// Turns an error of the operation `action` on `path` into one that says so.
    pub(crate) fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
