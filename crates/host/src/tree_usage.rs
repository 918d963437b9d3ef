//! The space that a tree of files uses. Containers write such trees while they are measured: links
//! are never followed, other file systems never entered, and depth, number, memory and open files are
//! bounded.

use std::{
    collections::HashSet,
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, fstat, openat2, statat,
    },
    io::Errno,
};

/// Most levels of directories: those below have no path that a program could open.
const MAX_DEPTH: usize = 2048;
/// Most directories that are open at a time; of a deeper tree, those above are opened again.
const MAX_OPEN: usize = 64;
/// Most entries of a tree: seconds of reading.
const MAX_ENTRIES: u64 = 2_000_000;
/// The unit of `st_blocks`, see stat(3type).
const BLOCK: u64 = 512;

pub(crate) const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Space on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeUsage {
    /// Allocated bytes, which a sparse file has fewer of than its size.
    pub bytes: u64,
    /// Inodes: files and directories, with the tree's own.
    pub inodes: u64,
    /// Whether the tree is deeper or larger than can be measured: it uses at least this.
    pub is_partial: bool,
}

/// The usage of a directory with everything in it on the same file system. Files with several names
/// in the tree count once; what is removed meanwhile may count or not. Of a tree with millions of
/// files or thousands of levels, only a part counts.
///
/// # Errors
/// The directory does not exist, or can't be read.
pub fn of(dir: &Path) -> io::Result<TreeUsage> {
    of_open(&rustix::fs::open(dir, DIR_FLAGS, Mode::empty())?)
}

/// As [`of`], of an open directory.
pub(crate) fn of_open(root: &OwnedFd) -> io::Result<TreeUsage> {
    let stat = fstat(root)?;
    let mut counted = CountedFiles::default();
    counted.add(&stat);
    walk(root, stat.st_dev, &mut counted)?;
    Ok(counted.usage)
}

/// The usage of a file. Links are not followed, and count as nothing.
///
/// # Errors
/// The file does not exist, or its directory can't be read.
pub fn of_file(path: &Path) -> io::Result<TreeUsage> {
    let stat = rustix::fs::lstat(path)?;
    let is_file = FileType::from_raw_mode(RawMode::from(stat.st_mode)) == FileType::RegularFile;
    Ok(match is_file {
        true => TreeUsage {
            bytes: u64::try_from(stat.st_blocks)
                .unwrap_or(0)
                .saturating_mul(BLOCK),
            inodes: 1,
            is_partial: false,
        },
        false => TreeUsage::default(),
    })
}

/// A directory between the tree's own and the one that is being read.
struct OpenDirectory {
    name: CString,
    inode: u64,
    /// `None` while it is closed, because those below it are open.
    entries: Option<Dir>,
    /// The position behind the last entry that was read.
    position: i64,
}

fn walk(root: &OwnedFd, device: u64, counted: &mut CountedFiles) -> io::Result<()> {
    let mut way = vec![OpenDirectory {
        name: CString::default(),
        inode: 0,
        entries: Some(Dir::read_from(root)?),
        position: 0,
    }];
    loop {
        let depth = way.len();
        let Some(here) = way.last_mut() else {
            return Ok(());
        };
        let Some(entries) = &mut here.entries else {
            let entries = reopen(root, &way)?;
            match way.last_mut().filter(|_| entries.is_some()) {
                Some(here) => here.entries = entries,
                None => drop(way.pop()),
            }
            continue;
        };
        let Some(entry) = entries.read() else {
            way.pop();
            continue;
        };
        let entry = entry?;
        here.position = entry.offset();
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let parent = entries.fd()?;
        let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            found => found?,
        };
        if stat.st_dev != device {
            continue;
        }
        counted.add(&stat);
        if counted.usage.inodes >= MAX_ENTRIES {
            counted.usage.is_partial = true;
            return Ok(());
        }
        if !is_directory(&stat) {
            continue;
        }
        if depth >= MAX_DEPTH {
            counted.usage.is_partial = true;
        } else if let Some(child) = open_child(parent, name)? {
            way.push(OpenDirectory {
                name: name.to_owned(),
                inode: stat.st_ino,
                entries: Some(Dir::new(child)?),
                position: 0,
            });
            if let Some(far) = way.len().checked_sub(MAX_OPEN + 1) {
                way[far].entries = None;
            }
        }
    }
}

/// Opens the last directory of a way again, to go on behind the last entry that was read. `None` if
/// it, or one above, was moved or removed meanwhile.
fn reopen(root: &OwnedFd, way: &[OpenDirectory]) -> io::Result<Option<Dir>> {
    let mut last: Option<OwnedFd> = None;
    for step in &way[1..] {
        let parent = last.as_ref().unwrap_or(root);
        let Some(child) = open_child(parent.as_fd(), &step.name)? else {
            return Ok(None);
        };
        if fstat(&child)?.st_ino != step.inode {
            return Ok(None);
        }
        last = Some(child);
    }
    let mut entries = match last {
        Some(last) => Dir::new(last)?,
        None => Dir::read_from(root)?,
    };
    if let Some(step) = way.last() {
        entries.seek(step.position)?;
    }
    Ok(Some(entries))
}

/// What was counted so far.
#[derive(Default)]
struct CountedFiles {
    usage: TreeUsage,
    /// Inodes of counted files that have more than one name.
    several_names: HashSet<u64>,
}

impl CountedFiles {
    fn add(&mut self, stat: &Stat) {
        if stat.st_nlink > 1 && !is_directory(stat) && !self.several_names.insert(stat.st_ino) {
            return;
        }
        self.usage.inodes += 1;
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        let bytes = blocks.saturating_mul(BLOCK);
        self.usage.bytes = self.usage.bytes.saturating_add(bytes);
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(RawMode::from(stat.st_mode)) == FileType::Directory
}

/// Opens a directory within another one; `None` if it was replaced or removed meanwhile.
fn open_child(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<OwnedFd>> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    loop {
        match openat2(parent, name, DIR_FLAGS, Mode::empty(), within) {
            Ok(child) => return Ok(Some(child)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(None),
            // A rename raced with the kernel's check, see openat2(2).
            Err(Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::Builder::new()
            .prefix("rbt-host-")
            .tempdir()
            .unwrap()
    }

    #[test]
    fn files_count_once_and_links_are_not_followed() {
        let (tree, outside) = (scratch(), scratch());
        let empty = of(tree.path()).unwrap();
        assert_eq!(empty.inodes, 1);
        fs::write(outside.path().join("large"), vec![1; 1 << 20]).unwrap();
        let below = tree.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("file"), vec![1; 64 << 10]).unwrap();
        fs::hard_link(below.join("file"), tree.path().join("same")).unwrap();
        symlink(outside.path(), tree.path().join("directory")).unwrap();
        symlink(outside.path().join("large"), tree.path().join("link")).unwrap();
        let found = of(tree.path()).unwrap();
        assert_eq!(found.inodes, 6);
        let bytes = (64 << 10)..(256 << 10);
        assert!(bytes.contains(&found.bytes), "{found:?}");
        let link = tree.path().join("directory");
        assert!(of(&link).is_err(), "the tree itself is not a link");
    }

    #[test]
    fn a_sparse_file_uses_what_is_allocated() {
        let tree = scratch();
        let file = fs::File::create(tree.path().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(of(tree.path()).unwrap().bytes < 1 << 20);
    }

    /// A chain of directories, longer than a path may be, with a file in each.
    fn dig(at: &Path, depth: usize) {
        let mut here = rustix::fs::open(at, DIR_FLAGS, Mode::empty()).unwrap();
        for _ in 0..depth {
            let file = OFlags::CREATE | OFlags::WRONLY;
            rustix::fs::openat(&here, "a", file, Mode::RWXU).unwrap();
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            rustix::fs::openat(&here, "z", file, Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, "d", DIR_FLAGS, Mode::empty()).unwrap();
        }
    }

    /// Removes such a chain, which the standard library can't.
    fn undig(at: &Path) {
        let (top, second, free) = (at.join("d"), at.join("d/d"), at.join("free"));
        loop {
            let is_last = fs::rename(&second, &free).is_err();
            fs::remove_dir_all(&top).unwrap();
            if is_last {
                return;
            }
            fs::rename(&free, &top).unwrap();
        }
    }

    #[test]
    fn all_of_a_deep_tree_counts_and_of_one_without_paths_the_upper_part() {
        let tree = scratch();
        let deep = 5 * MAX_OPEN;
        dig(tree.path(), deep);
        let found = of(tree.path()).unwrap();
        assert_eq!(
            (found.inodes, found.is_partial),
            (1 + 3 * deep as u64, false)
        );
        let deeper = scratch();
        dig(deeper.path(), MAX_DEPTH + 100);
        let found = of(deeper.path());
        undig(deeper.path());
        let found = found.unwrap();
        assert_eq!(
            (found.inodes, found.is_partial),
            (1 + 3 * MAX_DEPTH as u64, true)
        );
        let missing = of(Path::new("/no/such/directory")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
