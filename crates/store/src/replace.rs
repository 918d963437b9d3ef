//! Replaces a file so that a crash at any instant leaves the old or the new content.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use crate::write_behind::flush_later;

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
    write_and_rename(path, temporary, bytes, File::sync_all)?;
    sync_dir(directory(path)).map_err(failed("flush the directory of"))
}

/// As [`replace`], but the content is flushed behind this call. When it returns, the content
/// survives the death of this process.
///
/// # Errors
/// See [`ReplaceError`]; `temporary` is removed.
pub fn replace_behind(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), ReplaceError> {
    write_and_rename(path, temporary, bytes, |_| Ok(()))?;
    flush_later(path);
    Ok(())
}

fn write_and_rename(
    path: &Path,
    temporary: &Path,
    bytes: &[u8],
    flush: impl FnOnce(&File) -> io::Result<()>,
) -> Result<(), ReplaceError> {
    let renamed = write(temporary, bytes)
        .and_then(|file| flush(&file))
        .map_err(failed("write"))
        .and_then(|()| fs::rename(temporary, path).map_err(failed("replace")));
    // Frees the space on a full disk; a leftover is overwritten next time.
    renamed.inspect_err(|_| drop(fs::remove_file(temporary)))
}

fn failed(step: &'static str) -> impl FnOnce(io::Error) -> ReplaceError {
    move |source| ReplaceError { step, source }
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

fn write(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}
