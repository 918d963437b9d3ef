//! One runtime per folder and bridge: a second one would reap, kill and remove what the first one
//! runs.

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_host::{
    lock::{self, FileLock, LockError},
    net_lock::{self, NetLock, NetLockError},
};

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
    /// Another runtime has the bridge.
    #[error(
        "another runtime (process {holder}) keeps the pods' bridge {name}: stop it, or name another \
         bridge for this one with rubelet.runtime.bridge (--runtime-bridge)"
    )]
    Bridge {
        /// The bridge.
        name: String,
        /// The other runtime's process, as far as known.
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

/// Takes the bridge, and with it all names on the host that derive from its own. `None` where that
/// can't be made sure.
pub(crate) fn take_bridge(name: &str) -> Result<Option<NetLock>, OwnershipError> {
    match net_lock::take(&format!("rubelet/bridge/{name}")) {
        Ok(held) => Ok(Some(held)),
        Err(NetLockError::Taken { holder }) => Err(OwnershipError::Bridge {
            name: name.to_owned(),
            holder,
        }),
        Err(error) => {
            tracing::warn!(bridge = name, %error, "It can't be made sure that no other runtime uses the bridge");
            Ok(None)
        }
    }
}
