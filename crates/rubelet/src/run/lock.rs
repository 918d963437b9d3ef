//! One agent for one root directory, and the kubelet's `--lock-file`.

use std::{fs::File, io, mem::MaybeUninit, path::Path};

use anyhow::{Context as _, bail};
use rubelet_host::lock::{self, FileLock, LockError};
use rustix::fs::{FlockOperation, flock, inotify};

/// Locks the root directory.
pub(super) fn take(root: &Path) -> anyhow::Result<FileLock> {
    let path = root.join("rubelet.lock");
    match lock::take(&path) {
        Ok(held) => Ok(held),
        Err(LockError::Taken { holder }) => bail!(
            "another agent uses the root directory {} (process {holder}); stop it, or choose another \
             with --root-dir",
            root.display()
        ),
        Err(LockError::File(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Holds the lock on the file of `--lock-file` until it is dropped, or the process exits.
pub(super) struct ContendedFile(
    #[expect(dead_code, reason = "the lock lives as long as the file")] File,
);

/// Locks the file of `--lock-file`; waits while another agent holds it, as the kubelet does.
pub(super) fn wait_for_file(path: &Path) -> anyhow::Result<ContendedFile> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("cannot open the lock file {}", path.display()))?;
    flock(&file, FlockOperation::LockExclusive)
        .map_err(io::Error::from)
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(ContendedFile(file))
}

/// Blocks until another process opens or removes the lock file.
pub(super) fn wait_for_contention(path: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot watch the lock file {}", path.display());
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)
        .map_err(io::Error::from)
        .with_context(failed)?;
    let events = inotify::WatchFlags::OPEN | inotify::WatchFlags::DELETE_SELF;
    inotify::add_watch(&watch, path, events)
        .map_err(io::Error::from)
        .with_context(failed)?;
    let mut buffer = [MaybeUninit::uninit(); 1024];
    inotify::Reader::new(watch, &mut buffer)
        .next()
        .map_err(io::Error::from)
        .with_context(failed)?;
    Ok(())
}
