//! Directories with an exact mode, independent of the umask.

use std::{
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::Path,
};

use rustix::fs::{Dir, Mode, OFlags};

/// Flags to open a directory that can be read, and no link to one.
pub(crate) const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Creates a directory and its missing parents, each with `mode`. Existing ones are left as they
/// are.
pub(crate) fn ensure(path: &Path, mode: u32) -> io::Result<()> {
    // Follows a symbolic link to a directory: an administrator may have moved it.
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

/// Sets the mode, if it differs.
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o7777 == mode {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Sets the mode of a directory that was just created in an open one, independent of the umask, and
/// opens it. A container that can write there may have replaced it since: the replacement keeps its
/// mode, unless it is empty and belongs to us, like the created one.
pub(crate) fn finish(parent: impl AsFd, name: &OsStr, mode: u32) -> rustix::io::Result<OwnedFd> {
    let made = rustix::fs::openat(parent, name, FLAGS, Mode::empty())?;
    let owner = rustix::fs::fstat(&made)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() && is_empty(&made)? {
        rustix::fs::fchmod(&made, Mode::from_raw_mode(mode))?;
    }
    Ok(made)
}

fn is_empty(dir: &OwnedFd) -> rustix::io::Result<bool> {
    for entry in Dir::read_from(dir)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The permission bits of a path.
#[cfg(test)]
pub(crate) fn mode(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
}
