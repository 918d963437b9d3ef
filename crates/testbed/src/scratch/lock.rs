//! Locks of this machine. Each is a lock on a directory, so that no lock file is left behind.

use std::fs::File;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use super::PARENT;

/// The lock of those who take much of what the whole machine has.
const SHORTAGES: &str = "/run";

/// Held while instances are created, swept or removed; released on drop.
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
        let held = lock(PARENT)?;
        Ok(Self { _held: held })
    }
}

/// Waits until no other test takes so many process IDs or so much memory that this one would be the first to run out. Others wait
/// until the file is dropped.
///
/// # Errors
/// When the directory of the lock can't be opened or locked.
pub fn shortage() -> Result<File> {
    lock(SHORTAGES)
}

fn lock(directory: &str) -> Result<File> {
    let held = File::open(directory).with_context(|| format!("cannot open {directory}"))?;
    flock(&held, FlockOperation::LockExclusive)
        .with_context(|| format!("cannot lock {directory}"))?;
    Ok(held)
}
