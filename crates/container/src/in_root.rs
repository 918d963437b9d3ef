//! Paths below a root directory, without escape: symbolic links are resolved as if the root were
//! `/` (RESOLVE_IN_ROOT), and magic links of `/proc` are refused.

use std::{
    ffi::OsStr,
    io,
    os::{fd::AsFd, fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, readlinkat},
    io::Errno,
};

/// Maximum dangling symbolic links that are followed while directories are created.
const MOST_LINKS: u32 = 40;
/// Attempts while another process renames directories of the path: openat2(2) then fails with
/// EAGAIN.
const MOST_RENAMES: u32 = 128;

/// Flags for a new file.
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open root directory.
#[derive(Debug)]
pub(crate) struct RootDir(OwnedFd);

impl RootDir {
    /// The current root of this process.
    pub(crate) fn current() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, "/", flags, Mode::empty())?))
    }

    /// Opens a path with O_PATH.
    pub(crate) fn find(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::PATH, ResolveFlags::empty())
    }

    /// Opens a path with these flags.
    pub(crate) fn open(
        &self,
        path: &Path,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> io::Result<OwnedFd> {
        let resolve = resolve | ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            let opened = openat2(
                &self.0,
                path,
                flags | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            );
            match opened {
                Err(Errno::AGAIN | Errno::INTR) if tries < MOST_RENAMES => tries += 1,
                Err(error) => return Err(error.into()),
                Ok(fd) => return Ok(fd),
            }
        }
    }

    /// Opens a directory; creates it and its parents if they are missing.
    pub(crate) fn make_dir(&self, path: &Path, mode: Mode) -> io::Result<OwnedFd> {
        match self.open(
            path,
            OFlags::PATH | OFlags::DIRECTORY,
            ResolveFlags::empty(),
        ) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        self.walk(path, mode)
    }

    fn walk(&self, path: &Path, mode: Mode) -> io::Result<OwnedFd> {
        let mut left: Vec<PathBuf> = names(path).rev().collect();
        let mut done = PathBuf::from("/");
        let mut dir = self.find(&done)?;
        let mut links = 0;
        while let Some(name) = left.pop() {
            // The kernel resolves each prefix from the root, with links and `..`.
            let next = done.join(&name);
            let flags = OFlags::PATH | OFlags::DIRECTORY;
            match self.open(&next, flags, ResolveFlags::empty()) {
                Ok(fd) => {
                    dir = fd;
                    done = next;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            match mkdirat(&dir, &name, mode) {
                Ok(()) => left.push(name),
                Err(Errno::EXIST) => {
                    // A dangling link, unless another process created the directory.
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    match readlinkat(&dir, &name, Vec::new()) {
                        Ok(target) => {
                            let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                            if target.is_absolute() {
                                done = PathBuf::from("/");
                                dir = self.find(&done)?;
                            }
                            left.extend(names(target).rev());
                        }
                        Err(_) => left.push(name),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(dir)
    }

    /// As [`Self::make_dir`], but refuses symbolic links in the path (`ELOOP`).
    pub(crate) fn make_ordinary_dir(&self, path: &Path, mode: Mode) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut done = PathBuf::from("/");
        let mut dir = self.find(&done)?;
        for name in names(path) {
            done.push(&name);
            let mut opened = self.open(&done, flags, ResolveFlags::NO_SYMLINKS);
            if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
                match mkdirat(&dir, &name, mode) {
                    // If another process created it meanwhile, it is opened under the same rule.
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                opened = self.open(&done, flags, ResolveFlags::NO_SYMLINKS);
            }
            dir = opened?;
        }
        Ok(dir)
    }

    /// As [`Self::make_file`], but a path with a symbolic link is refused (`ELOOP`).
    pub(crate) fn make_ordinary_file(&self, path: &Path) -> io::Result<OwnedFd> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let above = path.parent().unwrap_or(Path::new("/"));
        let dir = self.make_ordinary_dir(above, Mode::from_raw_mode(0o755))?;
        let mode = Mode::from_raw_mode(0o644);
        match openat(&dir, name, NEW_FILE, mode) {
            Ok(_) | Err(Errno::EXIST) => self.open(path, OFlags::PATH, ResolveFlags::NO_SYMLINKS),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file as a mount point; creates an empty one if it is missing.
    pub(crate) fn make_file(&self, path: &Path) -> io::Result<OwnedFd> {
        match self.find(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let above = path.parent().unwrap_or(Path::new("/"));
        let dir = self.make_dir(above, Mode::from_raw_mode(0o755))?;
        match openat(&dir, name, NEW_FILE, Mode::from_raw_mode(0o644)) {
            Ok(_) | Err(Errno::EXIST) => self.find(path),
            Err(error) => Err(error.into()),
        }
    }
}

/// Components of a path. `..` is kept: only the kernel can resolve it after a link.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    path.components().filter_map(|component| match component {
        Component::Normal(_) | Component::ParentDir => Some(PathBuf::from(component.as_os_str())),
        _ => None,
    })
}

/// Reports whether a descriptor refers to a directory.
pub(crate) fn is_dir(fd: impl AsFd) -> io::Result<bool> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests;
