//! Replaces a file so that a crash at any instant leaves the old or the new content.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use crate::{
    files::{directory, remove, sync_dir},
    kept,
};

/// A file was not replaced. Unless the last step failed, the old content is unchanged.
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
    let renamed = write(temporary, bytes)
        .and_then(|file| file.sync_all())
        .map_err(failed("write"))
        .and_then(|()| fs::rename(temporary, path).map_err(failed("replace")));
    // Frees the space on a full disk; a leftover is overwritten next time.
    renamed.inspect_err(|_| drop(fs::remove_file(temporary)))?;
    sync_dir(directory(path)).map_err(failed("flush the directory of"))?;
    // The next save makes a backup of this content. A leftover backup is harmless.
    let _ = kept::forget(path);
    Ok(())
}

/// As [`replace`], but the content is flushed in the background. When this returns, the content
/// survives a crash of this process. After a power failure the file may be empty; then `.NAME.kept`
/// has the previous content. Does not wait for the disk.
///
/// # Errors
/// See [`ReplaceError`]; `temporary` is removed.
pub fn replace_behind(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), ReplaceError> {
    let replaced = write(temporary, bytes)
        .map_err(failed("write"))
        .and_then(|_| kept::put_in_place(path, temporary).map_err(failed("replace")));
    replaced.inspect_err(|_| drop(fs::remove_file(temporary)))
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> ReplaceError {
    move |source| ReplaceError { step, source }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<File> {
    // Not truncated: ext4 writes a file at once that was, when it is closed.
    remove(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}
