//! Log directories as descriptors. A container that mounts the log directory can replace its pod's
//! directory, those of its containers, and those of other pods with links: they are never followed,
//! so that nothing elsewhere on the host is created, made accessible or removed.

use std::{
    ffi::OsStr,
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::DirBuilderExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// Mode of log directories: log collectors that do not run as root need access.
const MODE: u32 = 0o755;

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Creates the directory of a pod, and its parents.
pub(super) fn make_pod_dir(path: &Path) -> io::Result<OwnedFd> {
    let (Some(root), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if !root.is_dir() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(MODE).create(root)?;
    }
    // Links in the parents are the administrator's.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    make_dir(rustix::fs::open(root, flags, Mode::empty())?, name)
}

/// Creates the directory of a container in that of its pod.
pub(super) fn make_container_dir(pod: &Path, container: &str) -> io::Result<()> {
    make_dir(make_pod_dir(pod)?, container).map(drop)
}

/// Creates a directory in an open one. The mode is set separately, independent of the agent's
/// umask.
fn make_dir(parent: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
    let name = name.as_ref();
    let made = match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(MODE)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let dir = rustix::fs::openat(&parent, name, FLAGS, Mode::empty())?;
    // The name may refer to another directory by now; one with contents keeps its mode.
    if made && names(&dir)?.is_empty() {
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(MODE))?;
    }
    Ok(dir)
}

/// Opens the directory of a container in that of its pod.
pub(super) fn container_dir(pod: &Path, container: &OsStr) -> io::Result<OwnedFd> {
    let (Some(root), Some(name)) = (pod.parent(), pod.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(root, flags, Mode::empty())?;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let path = Path::new(name).join(container);
    Ok(rustix::fs::openat2(
        &root,
        path,
        FLAGS,
        Mode::empty(),
        within,
    )?)
}

/// The UTF-8 names in an open directory; all names of logs are UTF-8.
pub(super) fn names(dir: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Ok("." | "..") | Err(_) => {}
            Ok(name) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}

/// Removes a file of an open directory; a missing one is not an error.
pub(super) fn remove_file(dir: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
