//! Folders with an exact mode, whatever the umask is.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::Path,
};

/// Makes a folder and those above it that are missing, with `mode` for each that is made. Those
/// that exist are left as they are.
pub(crate) fn ensure(path: &Path, mode: u32) -> io::Result<()> {
    // A symbolic link in the place of a folder is followed, as an administrator may want it.
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        ensure(parent, mode)?;
    }
    match fs::DirBuilder::new().mode(mode).create(path) {
        Ok(()) => set_mode(path, mode),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Sets the mode, if it is another one.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// The permission bits of a path.
pub(crate) fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
}
