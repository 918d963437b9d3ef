//! Paths below a root, which nothing in that root can lead out of: symbolic links are followed as
//! if the root were `/`, and the links of `/proc` that lead to other files are not followed at all.

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

/// How many symbolic links that lead nowhere are followed while folders are made.
const MOST_LINKS: u32 = 40;
/// How often a path is tried again while somebody renames folders of it.
const MOST_RENAMES: u32 = 128;

/// A file that was not there before.
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open root folder.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

impl Root {
    /// The current root of this process.
    pub(crate) fn current() -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, "/", flags, Mode::empty())?))
    }

    /// Opens a path without looking at what is there.
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

    /// Opens a folder, and makes it and those above it as far as they are missing.
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
            // The kernel resolves each prefix anew, with its links and `..` inside of the root.
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
                    // A link that leads nowhere yet, unless somebody else made the folder.
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

    /// As [`Self::make_dir`], but a path with a symbolic link is refused (`ELOOP`), and nothing is made
    /// beyond one.
    pub(crate) fn make_ordinary_dir(&self, path: &Path, mode: Mode) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut done = PathBuf::from("/");
        let mut dir = self.find(&done)?;
        for name in names(path) {
            done.push(&name);
            let mut opened = self.open(&done, flags, ResolveFlags::NO_SYMLINKS);
            if matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
                match mkdirat(&dir, &name, mode) {
                    // Whatever somebody else made meanwhile is opened under the same rule.
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

    /// Opens a file for being mounted on, and makes it empty if it is missing.
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

/// Names of a path, with `..` as it is: only the kernel knows where it leads.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    path.components().filter_map(|component| match component {
        Component::Normal(_) | Component::ParentDir => Some(PathBuf::from(component.as_os_str())),
        _ => None,
    })
}

/// Whether a descriptor is of a folder.
pub(crate) fn is_dir(fd: impl AsFd) -> io::Result<bool> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    fn root() -> (tempfile::TempDir, Root) {
        let dir = tempfile::Builder::new()
            .prefix("rbt-container-")
            .tempdir()
            .unwrap();
        let fd = rustix::fs::open(
            dir.path(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .unwrap();
        (dir, Root(fd))
    }

    #[test]
    fn links_and_parents_stay_inside() {
        let (dir, root) = root();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        symlink("../../../../../..", dir.path().join("up")).unwrap();
        root.make_dir(Path::new("/out/a"), Mode::RWXU).unwrap();
        root.make_dir(Path::new("/up/../../b"), Mode::RWXU).unwrap();
        assert!(!outside.path().join("a").exists());
        assert!(dir.path().join("b").is_dir());
        let inside = dir.path().join(outside.path().strip_prefix("/").unwrap());
        assert!(inside.join("a").is_dir());
    }

    #[test]
    fn an_ordinary_directory_has_no_link_on_its_path() {
        let (dir, root) = root();
        let mode = Mode::from_raw_mode(0o755);
        fs::create_dir(dir.path().join("plain")).unwrap();
        symlink("plain", dir.path().join("link")).unwrap();
        symlink("missing", dir.path().join("dangling")).unwrap();
        symlink("/plain", dir.path().join("plain/above")).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        root.make_ordinary_dir(Path::new("/plain/a/b"), mode)
            .unwrap();
        assert!(dir.path().join("plain/a/b").is_dir());
        for (path, error) in [
            ("/link", libc::ELOOP),
            ("/link/x", libc::ELOOP),
            ("/dangling", libc::ELOOP),
            ("/dangling/x/y", libc::ELOOP),
            ("/plain/above/x", libc::ELOOP),
            ("/file", libc::ENOTDIR),
            ("/file/x", libc::ENOTDIR),
        ] {
            let refused = root.make_ordinary_dir(Path::new(path), mode).unwrap_err();
            let raw = refused.raw_os_error();
            assert!(
                raw == Some(error) || raw == Some(libc::ENOTDIR),
                "{path}: {refused}"
            );
        }
        assert!(!dir.path().join("plain/x").exists() && !dir.path().join("missing").exists());
    }

    #[test]
    fn files_are_made_with_the_folders_above() {
        let (dir, root) = root();
        root.make_file(Path::new("/etc/x/hosts")).unwrap();
        assert!(dir.path().join("etc/x/hosts").is_file());
        fs::write(dir.path().join("etc/x/hosts"), "kept").unwrap();
        root.make_file(Path::new("/etc/x/hosts")).unwrap();
        let text = fs::read_to_string(dir.path().join("etc/x/hosts")).unwrap();
        assert_eq!(text, "kept");
    }

    #[test]
    fn links_in_a_circle_end() {
        let (dir, root) = root();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert!(root.make_dir(Path::new("/a/c"), Mode::RWXU).is_err());
    }
}
