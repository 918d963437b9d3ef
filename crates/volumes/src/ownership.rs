//! `fsGroup`: changes the group of a volume. Works on descriptors, so that a container that
//! replaces files with symbolic links meanwhile can't redirect it, and skips file systems that are
//! mounted in the volume: they are not part of it, and may be a path of the host.

use std::{
    ffi::{CStr, OsStr},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

use crate::directory;

/// A volume's group can't be set.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// The number is not a valid GID.
    #[error("fsGroup {0} is out of range")]
    Group(i64),
    /// A file can't be changed.
    #[error("cannot change the group of {} to {group}", path.display())]
    Change {
        /// The file.
        path: PathBuf,
        /// The group.
        group: u32,
        /// The error.
        source: io::Error,
    },
    /// The directories are nested too deeply to keep all of them open.
    #[error("the directories in {} are nested more than {MAX_DEPTH} deep", path.display())]
    Depth {
        /// The volume.
        path: PathBuf,
    },
}

const MAX_DEPTH: usize = 256;
/// The access of the group to a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupAccess {
    /// Read it.
    Read,
    /// Read and write it.
    Write,
}

impl GroupAccess {
    /// Mode bits of files.
    fn of_files(self) -> u32 {
        match self {
            Self::Read => 0o440,
            Self::Write => 0o660,
        }
    }

    /// Mode bits of directories: also searchable, and setgid, so that new files belong to the
    /// group.
    fn of_directories(self) -> u32 {
        0o2110 | self.of_files()
    }
}

/// Changes the group of the directory `dir` and its contents, with this access. The directory
/// itself is changed last, so that it is right only if everything else is; with `on_root_mismatch`
/// nothing is done if it is right.
///
/// # Errors
/// See [`OwnershipError`].
pub fn apply(
    dir: &Path,
    group: i64,
    access: GroupAccess,
    on_root_mismatch: bool,
) -> Result<(), OwnershipError> {
    // The kernel interprets -1 as "unchanged".
    let gid = u32::try_from(group).ok().filter(|&gid| gid != u32::MAX);
    let gid = gid.ok_or(OwnershipError::Group(group))?;
    let mut walk = Walk {
        group: gid,
        access,
        path: dir.to_owned(),
        depth: 0,
    };
    let root = rustix::fs::open(dir, directory::FLAGS, Mode::empty())
        .map_err(|error| walk.failed(error))?;
    if on_root_mismatch {
        let stat = rustix::fs::fstat(&root).map_err(|error| walk.failed(error))?;
        let bits = access.of_directories();
        if stat.st_gid == gid && stat.st_mode & bits == bits {
            return Ok(());
        }
    }
    walk.dir(root)
}

const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Walk {
    group: u32,
    access: GroupAccess,
    /// The current path, for errors.
    path: PathBuf,
    depth: usize,
}

impl Walk {
    /// The directory itself is changed after its contents. One descriptor per level is open.
    fn dir(&mut self, dir: OwnedFd) -> Result<(), OwnershipError> {
        if self.depth > MAX_DEPTH {
            return Err(OwnershipError::Depth {
                path: self.path.clone(),
            });
        }
        let mut entries = Dir::new(dir).map_err(|error| self.failed(error))?;
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(|error| self.failed(error))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.path.push(OsStr::from_bytes(name.to_bytes()));
            self.depth += 1;
            let parent = entries.fd().map_err(|error| self.failed(error))?;
            if let Some(file) = open_entry(parent, name).map_err(|error| self.failed(error))? {
                self.entry(file)?;
            }
            self.depth -= 1;
            self.path.pop();
        }
        let dir = entries.fd().map_err(|error| self.failed(error))?;
        self.change(dir)
    }

    fn entry(&mut self, entry: OwnedFd) -> Result<(), OwnershipError> {
        let stat = rustix::fs::fstat(&entry).map_err(|error| self.failed(error))?;
        if kind(&stat) != FileType::Directory {
            return self.change(entry.as_fd());
        }
        // Of the opened directory, even if its name refers to another one by now.
        let dir = rustix::fs::openat(&entry, c".", directory::FLAGS, Mode::empty())
            .map_err(|error| self.failed(error))?;
        drop(entry);
        self.dir(dir)
    }

    fn change(&self, file: BorrowedFd<'_>) -> Result<(), OwnershipError> {
        set(file, self.group, self.access).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: Errno) -> OwnershipError {
        OwnershipError::Change {
            path: self.path.clone(),
            group: self.group,
            source: source.into(),
        }
    }
}

/// Opens a name in a directory without following a symbolic link. `None` for a mount point, and for
/// a file that was removed since the directory was read.
fn open_entry(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Option<OwnedFd>> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    loop {
        match rustix::fs::openat2(parent, name, PATH_FLAGS, Mode::empty(), within) {
            Ok(entry) => return Ok(Some(entry)),
            // A mount point, also of the same file system.
            Err(Errno::XDEV | Errno::NOENT) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn set(file: BorrowedFd<'_>, group: u32, access: GroupAccess) -> rustix::io::Result<()> {
    let gid = Some(Gid::from_raw(group));
    rustix::fs::chownat(file, c"", None, gid, AtFlags::EMPTY_PATH)?;
    // After the change of owner, which clears the setgid bit of files.
    let stat = rustix::fs::fstat(file)?;
    let bits = match kind(&stat) {
        // The mode of a symbolic link is ignored.
        FileType::Symlink => return Ok(()),
        FileType::Directory => access.of_directories(),
        _ => access.of_files(),
    };
    let mode = stat.st_mode & 0o7777;
    if mode | bits == mode {
        return Ok(());
    }
    // A descriptor that was opened as a path can be changed through /proc only.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmodat(
        CWD,
        path,
        Mode::from_raw_mode(mode | bits),
        AtFlags::empty(),
    )
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests;
