//! One runtime per root: a second one would reap, kill and remove what the first one runs.

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_host::lock::{self, FileLock, LockError};

/// Held for as long as this runtime may act on its root.
pub(crate) type Ownership = FileLock;

/// Why the root can't be had.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// Another runtime has it.
    #[error("another runtime (process {holder}) uses {}: stop it, or choose another folder", root.display())]
    Taken {
        /// The root.
        root: PathBuf,
        /// Its process, as far as known.
        holder: String,
    },
    /// The lock file can't be used.
    #[error("cannot lock {}", file.display())]
    File {
        /// The lock file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Takes the root.
pub(crate) fn take(root: &Path, lock: &Path) -> Result<Ownership, OwnershipError> {
    lock::take(lock).map_err(|error| match error {
        LockError::Taken { holder } => OwnershipError::Taken {
            root: root.to_owned(),
            holder,
        },
        LockError::File(source) => OwnershipError::File {
            file: lock.to_owned(),
            source,
        },
    })
}
