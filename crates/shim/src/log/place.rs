//! Where a log is: an open folder and a name in it.
//!
//! A container that mounts the folder of all logs from the host, as collectors of logs do, can put
//! anything in the place of the last two folders and of the file. A link there would have the shim
//! write to any file of the host what another container says. So those are never followed, nothing
//! but a regular file is written to, and what is done later is done in the folder that was opened.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags},
    io::Errno,
};

/// Folders above the file that belong to the pod and to the container. Links above them are the
/// administrator's: `/var/log` may be anywhere.
const OF_THE_POD: usize = 2;

/// As containerd opens logs: readable for the group, so that collectors need not be root.
const MODE: u32 = 0o640;

/// Mode of folders that are missing, less the umask: log collectors without root must get in.
const DIR_MODE: u32 = 0o755;

/// The part of a log's folder that is the administrator's, and the part that is the pod's.
fn split(dir: &Path) -> (&Path, &Path) {
    let mut base = dir;
    for _ in 0..OF_THE_POD {
        match (base.parent(), base.file_name()) {
            (Some(above), Some(_)) => base = above,
            _ => break,
        }
    }
    (base, dir.strip_prefix(base).unwrap_or(dir))
}

/// Makes the folder of a file, and what is missing above it.
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let (base, below) = split(parent);
    std::fs::create_dir_all(base)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut dir = rustix::fs::open(base, flags, Mode::empty())?;
    for part in below.components() {
        let Component::Normal(name) = part else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(DIR_MODE)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // A link in the place of a folder is refused.
        dir = rustix::fs::openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(())
}

/// A file in an open folder.
#[derive(Debug)]
pub(super) struct Place {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Place {
    /// Opens the folder of a file, which must be there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (base, below) = split(parent);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = rustix::fs::open(base, flags, Mode::empty())?;
        let dir = if below.as_os_str().is_empty() {
            base
        } else {
            let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            rustix::fs::openat2(&base, below, flags, Mode::empty(), within)?
        };
        Ok(Self {
            dir,
            name: name.to_owned(),
            path: path.to_owned(),
        })
    }

    /// The whole path, for messages and to look anew.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file, or makes it.
    pub(super) fn file(&self) -> io::Result<File> {
        self.open_file(OFlags::empty())
    }

    /// Makes the file, which must not be there.
    pub(super) fn new_file(&self) -> io::Result<File> {
        self.open_file(OFlags::EXCL)
    }

    fn open_file(&self, more: OFlags) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | more;
        // Without `NONBLOCK` a pipe in its place would stop the shim until somebody reads it.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::openat(&self.dir, &self.name, flags, Mode::from_raw_mode(MODE))?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(io::Error::other("it is no regular file")),
        }
    }

    /// Whether the name still is that of this file.
    pub(super) fn holds(&self, file: &File) -> io::Result<bool> {
        let there = match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => there,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let own = rustix::fs::fstat(file)?;
        Ok((there.st_dev, there.st_ino) == (own.st_dev, own.st_ino))
    }

    /// Removes the file if it is a regular one without content. Returns whether it was removed.
    pub(super) fn remove_if_empty(&self) -> io::Result<bool> {
        let found = match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        if !is_file || found.st_size != 0 {
            return Ok(false);
        }
        self.remove(&self.name)?;
        Ok(true)
    }

    /// The name with a suffix.
    pub(super) fn with_suffix(&self, suffix: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(".");
        name.push(suffix);
        name
    }

    /// Moves the file to another name of its folder, which may be in use only if `replace`.
    pub(super) fn move_to(&self, name: &OsStr, replace: bool) -> io::Result<()> {
        let flags = match replace {
            true => RenameFlags::empty(),
            false => RenameFlags::NOREPLACE,
        };
        rustix::fs::renameat_with(&self.dir, &self.name, &self.dir, name, flags)?;
        Ok(())
    }

    /// Undoes [`Self::move_to`], if nobody has made the file meanwhile.
    pub(super) fn move_back(&self, name: &OsStr) {
        let flags = RenameFlags::NOREPLACE;
        let _ = rustix::fs::renameat_with(&self.dir, name, &self.dir, &self.name, flags);
    }

    /// Removes a file of the folder; one that is gone already is no error.
    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use tempfile::TempDir;

    use super::*;

    /// The folder of all logs, which a container has mounted, and a folder of the host.
    fn host() -> (TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let (logs, victim) = (root.path().join("pods"), root.path().join("victim"));
        fs::create_dir_all(&logs).unwrap();
        fs::create_dir_all(victim.join("main")).unwrap();
        (root, logs, victim)
    }

    #[test]
    fn missing_folders_of_a_log_are_made() {
        let (_root, logs, _) = host();
        for log in [logs.join("deeper/ns_a_u/main/0.log"), logs.join("0.log")] {
            for _ in 0..2 {
                make_dir(&log).unwrap();
            }
            let made = fs::metadata(log.parent().unwrap()).unwrap();
            assert!(made.is_dir());
            assert_eq!(made.permissions().mode() & 0o700, 0o700);
            Place::open(&log).unwrap().new_file().unwrap();
        }
        assert!(make_dir(Path::new("/")).is_err());
    }

    #[test]
    fn no_folder_is_made_through_a_link_that_a_container_put_there() {
        let (_root, logs, victim) = host();
        symlink(&victim, logs.join("ns_a_u")).unwrap();
        make_dir(&logs.join("ns_a_u/other/0.log")).unwrap_err();
        assert!(!victim.join("other").exists());
        fs::create_dir(logs.join("ns_b_u")).unwrap();
        symlink(&victim, logs.join("ns_b_u/main")).unwrap();
        make_dir(&logs.join("ns_b_u/main/0.log")).unwrap_err();
    }

    #[test]
    fn only_a_containers_own_empty_log_is_removed() {
        let (_root, logs, victim) = host();
        let there = |path: &Path| fs::symlink_metadata(path).is_ok();
        let remove = |log: &Path| Place::open(log).and_then(|place| place.remove_if_empty());
        let log = logs.join("ns_a_u/main/0.log");
        make_dir(&log).unwrap();
        assert!(!remove(&log).unwrap());
        fs::write(&log, "").unwrap();
        assert!(remove(&log).unwrap() && !there(&log));
        fs::write(&log, "x").unwrap();
        assert!(!remove(&log).unwrap() && there(&log));

        // Empty files of the host, behind a link in the place of each part.
        let empty = victim.join("main/0.log");
        fs::write(&empty, "").unwrap();
        fs::remove_file(&log).unwrap();
        symlink(&empty, &log).unwrap();
        assert!(!remove(&log).unwrap() && there(&empty) && there(&log));
        symlink(victim.join("main"), logs.join("ns_a_u/link")).unwrap();
        remove(&logs.join("ns_a_u/link/0.log")).unwrap_err();
        symlink(&victim, logs.join("ns_link")).unwrap();
        remove(&logs.join("ns_link/main/0.log")).unwrap_err();
        assert!(there(&empty));
    }
}
