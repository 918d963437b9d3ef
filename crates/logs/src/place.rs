//! The location of a log: an open directory and a name in it. Calls block.
//!
//! A container that mounts /var/log/pods writable, as log collectors do, can replace the last two
//! directories and the file. A symbolic link there could redirect output into any file of the host,
//! or make the agent rename or remove one. So links are never followed there, only regular files
//! are used, and later operations use the open directory.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags},
    io::Errno,
};

/// The directories of the pod and of the container. Symbolic links above them are the
/// administrator's: `/var/log` may be one.
const OF_THE_POD: usize = 2;

/// As in containerd: readable for the group, for log collectors that are not root.
const MODE: u32 = 0o640;

/// Mode of created directories, less the umask: accessible for log collectors that are not root.
const DIR_MODE: u32 = 0o755;

/// Maximum number of files of one log: a container that can write to the directory must not make
/// the agent read an unlimited number of names.
pub const MAX_FILES: usize = 10_000;

/// Splits a log's directory into the administrator's part and the pod's part.
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

/// Creates the directory of a file and its parents.
///
/// # Errors
/// A directory can't be created, or its name is in use by something else, such as a link.
pub fn make_dir(path: &Path) -> io::Result<()> {
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
        // A symbolic link in place of a directory is refused.
        dir = rustix::fs::openat(&dir, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(())
}

/// A file in an open directory.
#[derive(Debug)]
pub struct LogPlace {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl LogPlace {
    /// Opens the directory of a file, which must exist.
    ///
    /// # Errors
    /// The directory is missing, or a link is in its place.
    pub fn open(path: &Path) -> io::Result<Self> {
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

    /// The whole path, for messages and for reopening.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens or creates the file.
    ///
    /// # Errors
    /// It can't be created, or is not a regular file.
    pub fn file(&self) -> io::Result<File> {
        self.open_file(OFlags::empty())
    }

    /// Creates the file, which must not exist.
    ///
    /// # Errors
    /// It exists, or can't be created.
    pub fn new_file(&self) -> io::Result<File> {
        self.open_file(OFlags::EXCL)
    }

    fn open_file(&self, more: OFlags) -> io::Result<File> {
        self.open_at(
            &self.name,
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | more,
        )
    }

    /// Opens another file of the directory to read it.
    ///
    /// # Errors
    /// It can't be opened, or is not a regular file.
    pub fn read_other(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, OFlags::RDONLY)
    }

    /// Creates another file of the directory, which must not exist.
    ///
    /// # Errors
    /// It exists, or can't be created.
    pub(crate) fn new_other(&self, name: &OsStr) -> io::Result<File> {
        self.open_at(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    fn open_at(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        // Without `NONBLOCK`, opening a FIFO in its place would block until it has a reader or
        // writer.
        let always = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, name, flags | always, Mode::from_raw_mode(MODE))?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            _ => Err(io::Error::other("not a regular file")),
        }
    }

    /// The name of the log's current file.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Names in the directory with the log's prefix: the current file and its rotated files.
    ///
    /// # Errors
    /// The directory can't be read, or has more of them than [`MAX_FILES`].
    pub fn files(&self) -> io::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?;
        let mut found = Vec::new();
        for entry in Dir::new(open)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if !name.starts_with(self.name.as_bytes()) {
                continue;
            }
            if found.len() == MAX_FILES {
                let text = format!("more than {MAX_FILES} files of one log");
                return Err(io::Error::other(text));
            }
            // The names of rotated files are ASCII.
            found.extend(std::str::from_utf8(name).map(str::to_owned));
        }
        Ok(found)
    }

    /// True if the name still refers to this file.
    ///
    /// # Errors
    /// The directory can't be read.
    pub fn holds(&self, file: &File) -> io::Result<bool> {
        let there = match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => there,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let own = rustix::fs::fstat(file)?;
        Ok((there.st_dev, there.st_ino) == (own.st_dev, own.st_ino))
    }

    /// Removes the file if it is a regular one without content. Returns whether it was removed.
    ///
    /// # Errors
    /// The file can't be removed.
    pub fn remove_if_empty(&self) -> io::Result<bool> {
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
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(".");
        name.push(suffix);
        name
    }

    /// Renames the file in its directory.
    ///
    /// # Errors
    /// The file does not exist, or the new name is in use.
    pub fn move_to(&self, name: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(&self.dir, &self.name, &self.dir, name, flags)?;
        Ok(())
    }

    /// Renames another file of the directory, replacing a file with the new name.
    ///
    /// # Errors
    /// The file does not exist.
    pub(crate) fn rename_other(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        rustix::fs::renameat(&self.dir, from, &self.dir, to)?;
        Ok(())
    }

    /// Undoes [`Self::move_to`], unless the file was recreated meanwhile.
    pub fn move_back(&self, name: &OsStr) {
        let flags = RenameFlags::NOREPLACE;
        let _ = rustix::fs::renameat_with(&self.dir, name, &self.dir, &self.name, flags);
    }

    /// Removes a file of the directory; a missing one is not an error.
    ///
    /// # Errors
    /// The file can't be removed.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests;
