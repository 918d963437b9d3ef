//! Creates missing paths for `DirectoryOrCreate` and `FileOrCreate`.
//!
//! Links in the existing part of the path are the administrator's own and are followed. Missing
//! components are created one by one in open directories and changed through their own descriptors:
//! a container that can write to a parent directory may replace a created file with a link, and
//! must not be able to have another file of the host created or made accessible.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use crate::directory;

const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Mode of directories, as in the kubelet.
const DIRECTORY: u32 = 0o755;
/// Mode of files.
const FILE: u32 = 0o644;

/// Creates a directory and its missing parents.
///
/// # Errors
/// The host refuses, or a file of another type has been created with one of the names.
pub(super) fn directory(path: &Path) -> io::Result<()> {
    directories(path).map(drop)
}

/// Creates an empty file; its parent directory must exist. `false` if the name exists by now.
///
/// # Errors
/// The host refuses.
pub(super) fn file(path: &Path) -> io::Result<bool> {
    let (parent, name) = split(path)?;
    let parent = rustix::fs::open(parent, ON_THE_WAY, Mode::empty())?;
    match make_file(&parent, name) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn directories(path: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::open(path, ON_THE_WAY, Mode::empty()) {
        Err(Errno::NOENT) => {}
        opened => return Ok(opened?),
    }
    let (parent, name) = split(path)?;
    let parent = directories(parent)?;
    match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(DIRECTORY)) {
        Ok(()) => Ok(directory::finish(&parent, name, DIRECTORY)?),
        // Another pod created it meanwhile. A broken link is not a directory.
        Err(Errno::EXIST) => Ok(rustix::fs::openat(
            &parent,
            name,
            ON_THE_WAY | OFlags::NOFOLLOW,
            Mode::empty(),
        )?),
        Err(error) => Err(error.into()),
    }
}

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

fn make_file(parent: impl AsFd, name: &OsStr) -> rustix::io::Result<()> {
    // With O_EXCL the last name is never followed, and the opened file is the created one.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let made = rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(FILE))?;
    rustix::fs::fchmod(&made, Mode::from_raw_mode(FILE))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;
    use crate::test_support::Scratch;

    fn closed_dir(path: &Path) {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// What a container does between the making of a directory and the change of its mode.
    #[test]
    fn a_directory_that_is_exchanged_after_it_was_made_is_not_changed() {
        let scratch = Scratch::new();
        let parent = rustix::fs::open(scratch.path(), ON_THE_WAY, Mode::empty()).unwrap();
        let secret = scratch.path().join("secret");
        closed_dir(&secret);
        fs::write(secret.join("x"), "").unwrap();

        symlink(&secret, scratch.path().join("link")).unwrap();
        let error = directory::finish(&parent, OsStr::new("link"), DIRECTORY).unwrap_err();
        assert!(matches!(error, Errno::LOOP | Errno::NOTDIR), "{error}");
        directory::finish(&parent, OsStr::new("secret"), DIRECTORY).unwrap();
        assert_eq!(directory::mode(&secret).unwrap(), 0o700);
    }

    #[test]
    fn a_link_instead_of_a_missing_file_creates_and_opens_nothing() {
        let scratch = Scratch::new();
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("shadow"), "").unwrap();
        fs::set_permissions(path("shadow"), fs::Permissions::from_mode(0o600)).unwrap();
        closed_dir(&path("closed"));
        symlink(path("shadow"), path("file")).unwrap();
        symlink(path("closed"), path("dir")).unwrap();
        symlink(path("elsewhere"), path("dangling")).unwrap();

        assert!(!file(&path("file")).unwrap());
        assert!(!file(&path("dangling")).unwrap());
        assert!(directory(&path("dangling")).is_err());
        assert!(directory(&path("dangling/below")).is_err());
        assert!(!path("elsewhere").exists());
        assert_eq!(directory::mode(&path("shadow")).unwrap(), 0o600);
        // A link above is the administrator's.
        directory(&path("dir/a/b")).unwrap();
        assert_eq!(directory::mode(&path("closed/a/b")).unwrap(), 0o755);
        assert_eq!(directory::mode(&path("closed")).unwrap(), 0o700);
    }
}
