//! Replaces a file so that a crash at any instant leaves the old or the new content.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::write_behind::put_in_place;

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
    let renamed = write(temporary, bytes)
        .and_then(|file| file.sync_all())
        .map_err(failed("write"))
        .and_then(|()| fs::rename(temporary, path).map_err(failed("replace")));
    // Frees the space on a full disk; a leftover is overwritten next time.
    renamed.inspect_err(|_| drop(fs::remove_file(temporary)))?;
    sync_dir(directory(path)).map_err(failed("flush the directory of"))
}

/// As [`replace`], but the content is flushed behind this call. When it returns, the content
/// survives the death of this process. After a power cut the file may be empty; then `.NAME.kept` is
/// what it was before.
///
/// A rename over a file would wait for the disk: ext4 then writes what is renamed at once, so that
/// programs which forget to flush do not lose both. An exchange of the two does not.
///
/// # Errors
/// See [`ReplaceError`]; `temporary` is removed.
pub fn replace_behind(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), ReplaceError> {
    let replaced = write(temporary, bytes)
        .map_err(failed("write"))
        .and_then(|_| put_in_place(path, temporary).map_err(failed("replace")));
    replaced.inspect_err(|_| drop(fs::remove_file(temporary)))
}

/// The last content of a file that is on the disk for certain, while its present one is not.
pub(crate) fn kept(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".kept");
    path.with_file_name(name)
}

/// Exchanges two files. `false` if there is no second one, or if the file system can't; then the first
/// is renamed.
pub(crate) fn exchange(first: &Path, second: &Path) -> io::Result<bool> {
    // A directory could be exchanged too.
    if fs::symlink_metadata(second).is_ok_and(|found| found.is_file()) {
        match renameat_with(CWD, first, CWD, second, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(true),
            Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    fs::rename(first, second).map(|()| false)
}

/// Removes a file, if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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
