//! Serializes reads and changes of the set of instances on this machine.

use std::fs::File;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use super::PARENT;

/// Held while instances are created, swept or removed; released on drop.
///
/// It is a lock on the directory that holds all instances, so that no lock file is left behind.
#[derive(Debug)]
pub struct HostLock {
    _held: File,
}

impl HostLock {
    /// Waits for the lock and acquires it.
    ///
    /// # Errors
    /// When the directory can't be opened or locked.
    pub fn take() -> Result<Self> {
        let held = File::open(PARENT).with_context(|| format!("cannot open {PARENT}"))?;
        flock(&held, FlockOperation::LockExclusive)
            .with_context(|| format!("cannot lock {PARENT}"))?;
        Ok(Self { _held: held })
    }
}
