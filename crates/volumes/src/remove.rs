//! Removes a directory tree without ever leaving it: no mount is crossed, not even one of the same
//! file system, and no symbolic link is followed. Each step goes through an open directory.

use std::{
    collections::HashSet,
    ffi::{CStr, CString, OsStr},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, RenameFlags, ResolveFlags, openat2, renameat_with, unlinkat},
    io::Errno,
};

use crate::directory;

/// Limits of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// True if files and links are removed, not only empty directories.
    pub(crate) files: bool,
    /// Maximum depth.
    pub(crate) depth: usize,
}

impl Limits {
    /// Everything.
    pub(crate) const ALL: Self = Self {
        files: true,
        depth: usize::MAX,
    };
    /// Empty directories, however nested.
    pub(crate) const DIRECTORIES: Self = Self {
        files: false,
        depth: usize::MAX,
    };
}

/// A file that could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveProblem {
    /// It is a mount point.
    #[error("{} is still mounted", .0.display())]
    Mounted(PathBuf),
    /// It contains files that Rubelet did not create.
    #[error("{} contains files that Rubelet did not create", .0.display())]
    NotEmpty(PathBuf),
    /// The kernel returns an error.
    #[error("cannot remove {}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Directories open at once. Deeper ones are moved up.
const MAX_OPEN: usize = 64;
/// Number of names read ahead in one directory.
const BATCH: usize = 1024;
/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 16;

/// Removes `name` in the directory `parent`, whose path `at` is for messages only. Continues with
/// the siblings after a problem. A missing name is not a problem.
pub(crate) fn tree(
    parent: BorrowedFd<'_>,
    at: &Path,
    name: &OsStr,
    limits: Limits,
) -> Vec<RemoveProblem> {
    let mut removal = Removal {
        parent,
        at,
        limits,
        frames: Vec::new(),
        problems: Vec::new(),
        moved: 0,
    };
    // Names of directory entries have no zero byte; a file with such a name can't exist.
    if let Ok(name) = CString::new(name.as_bytes()) {
        removal.remove(name);
    }
    while removal.problems.len() < MAX_PROBLEMS && removal.step() {}
    removal.problems
}

struct Removal<'a> {
    parent: BorrowedFd<'a>,
    at: &'a Path,
    limits: Limits,
    /// The open directories, from the top to the one that is being emptied.
    frames: Vec<Frame>,
    problems: Vec<RemoveProblem>,
    moved: u32,
}

struct Frame {
    fd: OwnedFd,
    name: CString,
    path: PathBuf,
    pending: Vec<CString>,
    /// Names that could not be removed; they must not be retried.
    stuck: HashSet<CString>,
}

enum StepResult {
    Gone,
    Enter(OwnedFd),
    Stuck(RemoveProblem),
}

impl Removal<'_> {
    /// Performs one step; returns whether there may be more.
    fn step(&mut self) -> bool {
        let Some(frame) = self.frames.last_mut() else {
            return false;
        };
        if frame.pending.is_empty() {
            match batch(&frame.fd, &frame.stuck) {
                Ok(names) => frame.pending = names,
                Err(error) => self.problems.push(refused(frame.path.clone(), error)),
            }
        }
        match frame.pending.pop() {
            Some(name) => self.remove(name),
            None => self.leave(),
        }
        true
    }

    /// The directory that contains the next name.
    fn current(&self) -> (BorrowedFd<'_>, &Path) {
        match self.frames.last() {
            Some(frame) => (frame.fd.as_fd(), &frame.path),
            None => (self.parent, self.at),
        }
    }

    fn remove(&mut self, name: CString) {
        let (dir, at) = self.current();
        let path = at.join(OsStr::from_bytes(name.as_bytes()));
        match attempt(dir, &name, &path, self.limits, self.frames.len()) {
            StepResult::Gone => {}
            StepResult::Enter(_) if self.frames.len() >= MAX_OPEN && self.move_up(&name) => {}
            StepResult::Enter(fd) => self.frames.push(Frame {
                fd,
                name,
                path,
                pending: Vec::new(),
                stuck: HashSet::new(),
            }),
            StepResult::Stuck(problem) => self.stuck(name, Some(problem)),
        }
    }

    fn stuck(&mut self, name: CString, problem: Option<RemoveProblem>) {
        self.problems.extend(problem);
        if let Some(frame) = self.frames.last_mut() {
            frame.stuck.insert(name);
        }
    }

    /// The directory is empty: removes it, too.
    fn leave(&mut self) {
        let Some(done) = self.frames.pop() else {
            return;
        };
        if !done.stuck.is_empty() {
            self.stuck(done.name, None);
            return;
        }
        match unlinkat(self.current().0, &done.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => self.stuck(done.name, Some(refused(done.path, error))),
        }
    }

    /// Moves a directory that is nested too deeply into the topmost one, where it is found later.
    fn move_up(&mut self, name: &CStr) -> bool {
        let (Some(top), Some(here)) = (self.frames.first(), self.frames.last()) else {
            return false;
        };
        (0..BATCH).any(|_| {
            self.moved += 1;
            let new = format!(".rubelet-moved-{}", self.moved);
            let flags = RenameFlags::NOREPLACE;
            renameat_with(&here.fd, name, &top.fd, new, flags).is_ok()
        })
    }
}

fn attempt(
    dir: BorrowedFd<'_>,
    name: &CStr,
    path: &Path,
    limits: Limits,
    level: usize,
) -> StepResult {
    let stuck = |error| StepResult::Stuck(refused(path.to_owned(), error));
    if limits.files {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return StepResult::Gone,
            Err(Errno::ISDIR) => {}
            Err(error) => return stuck(error),
        }
    }
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return StepResult::Gone,
        Err(Errno::NOTEMPTY | Errno::EXIST) if level < limits.depth => {}
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
            return StepResult::Stuck(RemoveProblem::NotEmpty(path.to_owned()));
        }
        Err(error) => return stuck(error),
    }
    let within = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(dir, name, directory::FLAGS, Mode::empty(), within) {
        Ok(fd) => StepResult::Enter(fd),
        Err(Errno::NOENT) => StepResult::Gone,
        Err(error) => stuck(error),
    }
}

/// The next names of a directory. Removed ones do not appear again, so reading restarts.
fn batch(dir: &OwnedFd, stuck: &HashSet<CString>) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && !stuck.contains(name) {
            names.push(name.to_owned());
        }
        if names.len() == BATCH {
            break;
        }
    }
    Ok(names)
}

fn refused(path: PathBuf, error: Errno) -> RemoveProblem {
    match error {
        // A mount point can't be removed, and must not be entered.
        Errno::BUSY | Errno::XDEV => RemoveProblem::Mounted(path),
        error => RemoveProblem::Refused {
            path,
            source: error.into(),
        },
    }
}

#[cfg(test)]
mod tests;
