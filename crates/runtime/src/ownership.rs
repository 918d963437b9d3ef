//! Locks that allow one runtime per directory and bridge: a second runtime would kill and remove
//! the pods of the first one.

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_host::{
    lock::{self, FileLock, LockError},
    net_lock::{self, NetLock, NetLockError},
};

/// Held while this runtime may change its root directory.
pub(crate) type Ownership = FileLock;

/// Why the root directory or the bridge can't be locked.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// Another runtime uses the root directory.
    #[error("another runtime (process {holder}) uses {}: stop it, or choose another directory", root.display())]
    Taken {
        /// The root.
        root: PathBuf,
        /// Its process, if known.
        holder: String,
    },
    /// Another runtime uses the bridge.
    #[error(
        "another runtime (process {holder}) uses the bridge {name}: stop it, or set another \
         bridge for this one with rubelet.runtime.bridge (--runtime-bridge)"
    )]
    Bridge {
        /// The bridge.
        name: String,
        /// The other runtime's process, if known.
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

/// Locks the root directory.
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

/// Locks the bridge, and with it all names on the host that derive from its name. `None` if the
/// lock is not available.
pub(crate) fn take_bridge(name: &str) -> Result<Option<NetLock>, OwnershipError> {
    match net_lock::take(&format!("rubelet/bridge/{name}")) {
        Ok(held) => Ok(Some(held)),
        Err(NetLockError::Taken { holder }) => Err(OwnershipError::Bridge {
            name: name.to_owned(),
            holder,
        }),
        Err(error) => {
            tracing::warn!(bridge = name, %error, "Failed to check that no other runtime uses the bridge");
            Ok(None)
        }
    }
}
