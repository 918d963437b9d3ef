//! Makes what `DirectoryOrCreate` and `FileOrCreate` ask for.
//!
//! Links in the part of the path that exists are the administrator's own and are followed. What is
//! missing is made name by name in open folders and changed through its own descriptor: a container
//! that can write to a folder on the way may put a link in the place of what was just made, and
//! must not have another file of the host made, or opened for everybody, by that.

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

use crate::folder;

const ON_THE_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Mode of folders, as the kubelet makes them.
const DIRECTORY: u32 = 0o755;
/// Mode of files.
const FILE: u32 = 0o644;

/// Makes a folder and those above it that are missing.
///
/// # Errors
/// The host refuses, or something else has one of the names by now.
pub(super) fn directory(path: &Path) -> io::Result<()> {
    directories(path).map(drop)
}

/// Makes an empty file; the folder above it must be there. `false` if something has the name by now.
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
        Ok(()) => Ok(folder::finish(&parent, name, DIRECTORY)?),
        // Another pod made it meanwhile. A link that leads nowhere is no folder.
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
    // With `EXCL` the last name is never followed, and what is opened is what was made.
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

    /// What a container does between the making of a folder and the change of its mode.
    #[test]
    fn a_folder_that_is_exchanged_after_it_was_made_is_not_changed() {
        let scratch = Scratch::new();
        let parent = rustix::fs::open(scratch.path(), ON_THE_WAY, Mode::empty()).unwrap();
        let secret = scratch.path().join("secret");
        closed_dir(&secret);
        fs::write(secret.join("x"), "").unwrap();

        symlink(&secret, scratch.path().join("link")).unwrap();
        let error = folder::finish(&parent, OsStr::new("link"), DIRECTORY).unwrap_err();
        assert!(matches!(error, Errno::LOOP | Errno::NOTDIR), "{error}");
        folder::finish(&parent, OsStr::new("secret"), DIRECTORY).unwrap();
        assert_eq!(folder::mode(&secret).unwrap(), 0o700);
    }

    #[test]
    fn a_link_in_the_place_of_what_is_missing_makes_and_opens_nothing() {
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
        assert_eq!(folder::mode(&path("shadow")).unwrap(), 0o600);
        // A link above is the administrator's.
        directory(&path("dir/a/b")).unwrap();
        assert_eq!(folder::mode(&path("closed/a/b")).unwrap(), 0o755);
        assert_eq!(folder::mode(&path("closed")).unwrap(), 0o700);
    }
}
