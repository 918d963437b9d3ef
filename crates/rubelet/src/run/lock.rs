//! One agent for one root folder.

use std::{fs::File, io, path::Path};

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};

/// Holds the root folder until it is dropped, or the process dies.
pub(super) struct RootLock(
    #[expect(dead_code, reason = "the lock lives as long as the file")] File,
);

/// Takes the root folder.
pub(super) fn take(root: &Path) -> anyhow::Result<RootLock> {
    let path = root.join("rubelet.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot open {}", path.display()))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(RootLock(file)),
        Err(error) if io::Error::from(error).kind() == io::ErrorKind::WouldBlock => bail!(
            "another agent uses the root folder {}; stop it, or choose another with --root-dir",
            root.display()
        ),
        Err(error) => {
            Err(io::Error::from(error)).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}
