//! Removes a tree of folders without ever leaving it: no mount is crossed, not even one of the
//! same file system, and no symbolic link is followed. Each step goes through an open folder.

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
    fs::{AtFlags, Dir, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with, unlinkat},
    io::Errno,
};

/// What may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Files and links, too; otherwise only folders that are empty.
    pub(crate) files: bool,
    /// How many levels of folders are entered.
    pub(crate) depth: usize,
}

impl Limits {
    /// Everything.
    pub(crate) const ALL: Self = Self {
        files: true,
        depth: usize::MAX,
    };
    /// Empty folders, however nested.
    pub(crate) const FOLDERS: Self = Self {
        files: false,
        depth: usize::MAX,
    };
}

/// Something that could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveProblem {
    /// Something is mounted there.
    #[error("{} is still mounted", .0.display())]
    Mounted(PathBuf),
    /// It has contents that were not made by Rubelet.
    #[error("{} has files that are not ours to delete", .0.display())]
    NotEmpty(PathBuf),
    /// The kernel refuses.
    #[error("cannot remove {}", path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// More folders than this are not kept open at once. What is nested deeper is moved up.
const MAX_OPEN: usize = 64;
/// Names that are read ahead in one folder.
const BATCH: usize = 1024;
/// More problems than this say nothing new.
const MAX_PROBLEMS: usize = 16;

/// Removes `name` in the folder `parent`, whose path `at` is for messages only. Goes on after a
/// problem with what is beside it. Nothing there is not a problem.
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
    // Names come from folders and so have no zero byte; a file of such a name can't be there.
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
    /// The folders that are open, from the top to the one that is being emptied.
    frames: Vec<Frame>,
    problems: Vec<RemoveProblem>,
    moved: u32,
}

struct Frame {
    fd: OwnedFd,
    name: CString,
    path: PathBuf,
    pending: Vec<CString>,
    /// Names that stay; they must not be tried again.
    stuck: HashSet<CString>,
}

enum Outcome {
    Gone,
    Enter(OwnedFd),
    Stuck(RemoveProblem),
}

impl Removal<'_> {
    /// Does one thing; whether there may be more to do.
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

    /// The folder in which the next name is.
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
            Outcome::Gone => {}
            Outcome::Enter(_) if self.frames.len() >= MAX_OPEN && self.move_up(&name) => {}
            Outcome::Enter(fd) => self.frames.push(Frame {
                fd,
                name,
                path,
                pending: Vec::new(),
                stuck: HashSet::new(),
            }),
            Outcome::Stuck(problem) => self.stuck(name, Some(problem)),
        }
    }

    fn stuck(&mut self, name: CString, problem: Option<RemoveProblem>) {
        self.problems.extend(problem);
        if let Some(frame) = self.frames.last_mut() {
            frame.stuck.insert(name);
        }
    }

    /// The last folder was gone through: it goes, too.
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

    /// Moves a folder that is nested too deeply into the topmost one, where it is found again.
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

fn attempt(dir: BorrowedFd<'_>, name: &CStr, path: &Path, limits: Limits, level: usize) -> Outcome {
    let stuck = |error| Outcome::Stuck(refused(path.to_owned(), error));
    if limits.files {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Outcome::Gone,
            Err(Errno::ISDIR) => {}
            Err(error) => return stuck(error),
        }
    }
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => return Outcome::Gone,
        Err(Errno::NOTEMPTY | Errno::EXIST) if level < limits.depth => {}
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
            return Outcome::Stuck(RemoveProblem::NotEmpty(path.to_owned()));
        }
        Err(error) => return stuck(error),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let within = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    match openat2(dir, name, flags, Mode::empty(), within) {
        Ok(fd) => Outcome::Enter(fd),
        Err(Errno::NOENT) => Outcome::Gone,
        Err(error) => stuck(error),
    }
}

/// The next names of a folder. What was removed doesn't show up again, so reading starts over.
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
mod tests {
    use std::{fs, fs::File, os::unix::fs::symlink};

    use rubelet_host::mount;

    use super::*;
    use crate::test_support::Scratch;

    fn remove(scratch: &Scratch, limits: Limits) -> Vec<String> {
        let parent = File::open(scratch.path()).unwrap();
        let problems = tree(parent.as_fd(), scratch.path(), OsStr::new("t"), limits);
        let root = format!("{}/", scratch.path().display());
        problems
            .iter()
            .map(|problem| problem.to_string().replace(&root, ""))
            .collect()
    }

    fn files(scratch: &Scratch, names: &[&str]) {
        for name in names {
            let path = scratch.path().join("t").join(name);
            if name.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            }
        }
    }

    #[test]
    fn a_tree_goes_and_links_are_not_followed() {
        let scratch = Scratch::new();
        files(&scratch, &["a/b/c", "a/d", "e/", "f"]);
        let outside = scratch.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        for link in ["t/l1", "t/a/b/l2"] {
            symlink(&outside, scratch.path().join(link)).unwrap();
        }
        for _ in 0..2 {
            assert_eq!(remove(&scratch, Limits::ALL), [""; 0]);
            assert!(!scratch.path().join("t").exists());
        }
        assert!(outside.join("kept").exists());
        symlink(&outside, scratch.path().join("t")).unwrap();
        assert_eq!(
            remove(&scratch, Limits::ALL),
            [""; 0],
            "a link goes, not what it points to"
        );
        assert!(outside.join("kept").exists());
    }

    #[test]
    fn without_files_only_empty_folders_go() {
        let scratch = Scratch::new();
        files(&scratch, &["a/b/", "c/d/", "c/f"]);
        let problem = "t/c/f has files that are not ours to delete";
        assert_eq!(remove(&scratch, Limits::FOLDERS), [problem]);
        assert!(!scratch.path().join("t/a").exists());
        assert!(!scratch.path().join("t/c/d").exists());
        fs::remove_file(scratch.path().join("t/c/f")).unwrap();
        assert_eq!(remove(&scratch, Limits::FOLDERS), [""; 0]);
    }

    #[test]
    fn no_more_levels_than_allowed_are_entered() {
        let scratch = Scratch::new();
        files(&scratch, &["v/c/0/", "v/c/1", "v/c/2/deep"]);
        let limits = Limits {
            files: true,
            depth: 3,
        };
        let problem = "t/v/c/2 has files that are not ours to delete";
        assert_eq!(remove(&scratch, limits), [problem]);
        assert!(scratch.path().join("t/v/c/2/deep").exists());
        assert!(!scratch.path().join("t/v/c/1").exists());
    }

    #[test]
    fn many_files_and_deep_folders_go() {
        let scratch = Scratch::new();
        let names: Vec<String> = (0..3000).map(|number| format!("many/{number}")).collect();
        files(
            &scratch,
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        // Deeper than any path can be long: made the way a container would, step by step.
        let mut dir = OwnedFd::from(File::open(scratch.path().join("t")).unwrap());
        for _ in 0..3000 {
            rustix::fs::mkdirat(&dir, "d", Mode::RWXU).unwrap();
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            dir = rustix::fs::openat(&dir, "d", flags, Mode::empty()).unwrap();
        }
        drop(dir);
        assert_eq!(remove(&scratch, Limits::ALL), [""; 0]);
        assert!(!scratch.path().join("t").exists());
    }

    #[test]
    fn mounts_are_never_entered_not_even_of_the_same_file_system() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        files(&scratch, &["bound/", "tmpfs/", "file", "beside"]);
        let precious = scratch.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("kept"), "").unwrap();
        mount::bind(&precious, &scratch.path().join("t/bound")).unwrap();
        mount::bind(&precious.join("kept"), &scratch.path().join("t/file")).unwrap();
        mount::tmpfs(&scratch.path().join("t/tmpfs"), Default::default()).unwrap();
        fs::write(scratch.path().join("t/tmpfs/kept"), "").unwrap();
        let mut problems = remove(&scratch, Limits::ALL);
        problems.sort();
        let mounted = ["t/bound", "t/file", "t/tmpfs"];
        assert_eq!(
            problems,
            mounted.map(|path| format!("{path} is still mounted"))
        );
        assert!(precious.join("kept").exists());
        assert!(scratch.path().join("t/tmpfs/kept").exists());
        assert!(!scratch.path().join("t/beside").exists());
    }
}
