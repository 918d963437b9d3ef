//! Replaces a file so that a crash at any instant leaves the old or the new content.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// Why a file was not replaced. After any step but the last, the old content is still there.
#[derive(Debug, thiserror::Error)]
#[error("cannot {step} the file")]
pub struct ReplaceError {
    /// The failed operation; the path follows.
    pub step: &'static str,
    /// The error.
    pub source: io::Error,
}

/// Writes `bytes` to `temporary`, a path in the same directory that no other process uses, with
/// mode 0600, flushes it, renames it to `path` and flushes the directory. When this returns, the
/// content survives a power loss.
///
/// # Errors
/// See [`ReplaceError`]; `temporary` is removed.
pub fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), ReplaceError> {
    let failed = |step| move |source| ReplaceError { step, source };
    let renamed = write_synced(temporary, bytes)
        .map_err(failed("write"))
        .and_then(|()| fs::rename(temporary, path).map_err(failed("replace")));
    if let Err(error) = renamed {
        // Frees the space on a full disk; a leftover is overwritten next time.
        let _ = fs::remove_file(temporary);
        return Err(error);
    }
    sync_dir(directory(path)).map_err(failed("flush the directory of"))
}

/// The directory of a file.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Flushes a directory, so that renames and removals survive a power loss.
pub(crate) fn sync_dir(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
