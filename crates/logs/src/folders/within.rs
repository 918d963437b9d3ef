//! Log folders as descriptors. A container that mounts the folder of all logs can put links in the
//! place of its pod's folder, of those of its containers, and of those of other pods: they are never
//! followed, so that nothing elsewhere on the host is made, opened for everybody or removed.

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

/// Mode of log folders: log collectors without root must get in.
const MODE: u32 = 0o755;

const FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes the folder of a pod, and those above it.
pub(super) fn make_pod_dir(path: &Path) -> io::Result<OwnedFd> {
    let (Some(root), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if !root.is_dir() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(MODE).create(root)?;
    }
    // Links down to here are the administrator's.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    make_dir(rustix::fs::open(root, flags, Mode::empty())?, name)
}

/// Makes a folder in an open one. The mode is set apart from the making, whatever umask the agent was
/// started with.
pub(super) fn make_dir(parent: impl AsFd, name: impl AsRef<OsStr>) -> io::Result<OwnedFd> {
    let name = name.as_ref();
    let made = match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(MODE)) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let dir = rustix::fs::openat(&parent, name, FLAGS, Mode::empty())?;
    // Another folder may have been moved to the name since; one with contents keeps its mode.
    if made && names(&dir)?.is_empty() {
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(MODE))?;
    }
    Ok(dir)
}

/// Opens the folder of a container in that of its pod.
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

/// The names in an open folder that are UTF-8, as all names of logs are.
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

/// Removes a file of an open folder; one that is gone is no error.
pub(super) fn remove_file(dir: &OwnedFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
