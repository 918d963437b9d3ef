//! Files and directories of the system's logs, for clients far away. Calls block.
//!
//! A container that mounts `/var/log` writable, as log collectors do, can put symbolic links there; to
//! follow one to any file would show it the whole host. A link is followed only if it is the last part of
//! the path, as those of `/var/log/containers` are, and to a place in the same directory. Only regular
//! files are read.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{Dir, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// Number of links that are followed, one after the other.
const MAX_LINKS: usize = 8;
/// Number of names of a directory that are read.
const MAX_NAMES: usize = 10_000;

/// To open what may have been replaced by a pipe or a device.
const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY);

/// What is at a path.
#[derive(Debug)]
pub enum SystemLogEntry {
    /// A directory: names in order; those of directories end with a slash. Names that are not UTF-8
    /// are left out.
    Directory(Vec<String>),
    /// A regular file, and its size.
    File(File, u64),
}

/// Why nothing is shown at a path.
#[derive(Debug, thiserror::Error)]
pub enum SystemLogError {
    /// There is nothing.
    #[error("there is no such file")]
    NotFound,
    /// There is a link to elsewhere, or no regular file.
    #[error("only files and directories below the directory of logs are shown")]
    Forbidden,
    /// An I/O error.
    #[error("cannot read it")]
    Io(#[source] io::Error),
}

/// Opens what is at `path`, names below the directory `root`.
///
/// # Errors
/// See [`SystemLogError`].
pub fn open(root: &Path, path: &[impl AsRef<str>]) -> Result<SystemLogEntry, SystemLogError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(root, flags, Mode::empty()).map_err(failed)?;
    let parts = path.iter().map(|part| -> &str { part.as_ref() });
    let mut path: PathBuf = parts.collect();
    for _ in 0..=MAX_LINKS {
        let found = at(&directory, &path, OFlags::PATH | OFlags::NOFOLLOW)?;
        match file_type(&found)? {
            FileType::RegularFile => return file(at(&directory, &path, READ)?),
            FileType::Directory => return names(&directory, &path),
            FileType::Symlink => path = target(root, &path, &found)?,
            _ => return Err(SystemLogError::Forbidden),
        }
    }
    Err(SystemLogError::Forbidden)
}

/// Opens a path below a directory, without following a link.
fn at(directory: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, SystemLogError> {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let flags = flags | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    rustix::fs::openat2(directory, path, flags, Mode::empty(), within).map_err(failed)
}

fn file_type(found: &OwnedFd) -> Result<FileType, SystemLogError> {
    let stat = rustix::fs::fstat(found).map_err(failed)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn file(opened: OwnedFd) -> Result<SystemLogEntry, SystemLogError> {
    // It may have been replaced since it was looked at.
    if file_type(&opened)? != FileType::RegularFile {
        return Err(SystemLogError::Forbidden);
    }
    let file = File::from(opened);
    let length = file.metadata().map_err(SystemLogError::Io)?.len();
    Ok(SystemLogEntry::File(file, length))
}

fn names(directory: &OwnedFd, path: &Path) -> Result<SystemLogEntry, SystemLogError> {
    let opened = at(directory, path, READ | OFlags::DIRECTORY)?;
    let mut names = Vec::new();
    for entry in Dir::read_from(&opened).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if matches!(name, "." | "..") {
            continue;
        }
        let slash = match entry.file_type() {
            FileType::Directory => "/",
            _ => "",
        };
        names.push(format!("{name}{slash}"));
        if names.len() == MAX_NAMES {
            break;
        }
    }
    names.sort_unstable();
    Ok(SystemLogEntry::Directory(names))
}

/// Where a link leads, as a path below `root`.
fn target(root: &Path, path: &Path, link: &OwnedFd) -> Result<PathBuf, SystemLogError> {
    let target = rustix::fs::readlinkat(link, "", Vec::new()).map_err(failed)?;
    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
    let mut found = PathBuf::new();
    let rest = if target.is_absolute() {
        let below = target.strip_prefix(root);
        below.map_err(|_| SystemLogError::Forbidden)?
    } else {
        found.extend(path.parent());
        target
    };
    // No directory on the way is a link, or opening it fails: `..` is what it looks like.
    for part in rest.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir if found.pop() => {}
            _ => return Err(SystemLogError::Forbidden),
        }
    }
    Ok(found)
}

fn failed(error: Errno) -> SystemLogError {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => SystemLogError::NotFound,
        Errno::LOOP | Errno::XDEV | Errno::ACCESS | Errno::PERM => SystemLogError::Forbidden,
        other => SystemLogError::Io(other.into()),
    }
}

#[cfg(test)]
mod tests;
