//! Files, their directories, and what is reported of them.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

/// Removes a file, if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
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

/// True if a file was flushed or no longer exists.
pub(crate) fn report(path: &Path, flushed: io::Result<()>) -> bool {
    match flushed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "Cannot flush a record to the disk, a power failure may lose it");
            false
        }
        _ => true,
    }
}
