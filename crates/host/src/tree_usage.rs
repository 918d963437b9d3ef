//! The space that a tree of files uses. Containers write such trees while they are measured: links
//! are never followed, other file systems never entered, and depth and number are bounded.

use std::{
    collections::HashSet,
    ffi::CStr,
    io,
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, Stat, fstat, openat2, statat,
    },
    io::Errno,
};

/// Most levels of directories that are open at the same time, each with a descriptor.
const MAX_DEPTH: usize = 128;
/// Most directories below those that wait for their turn, each with a descriptor.
const MAX_WAITING: usize = 128;
/// Most entries of a tree: seconds of reading.
const MAX_ENTRIES: u64 = 2_000_000;
/// The unit of `st_blocks`, see stat(3type).
const BLOCK: u64 = 512;

const DIR_FLAGS: OFlags = OFlags::RDONLY
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
/// in the tree count once; what is removed meanwhile may count or not.
///
/// # Errors
/// The directory does not exist or can't be read.
pub fn of(dir: &Path) -> io::Result<TreeUsage> {
    let root = rustix::fs::open(dir, DIR_FLAGS, Mode::empty())?;
    let stat = fstat(&root)?;
    let mut walk = TreeWalk {
        device: stat.st_dev,
        usage: TreeUsage::default(),
        several_names: HashSet::new(),
        waiting: vec![root],
    };
    walk.count(&stat);
    while let Some(directory) = walk.waiting.pop() {
        walk.directory(directory, 1)?;
    }
    Ok(walk.usage)
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

struct TreeWalk {
    device: u64,
    usage: TreeUsage,
    /// Inodes of counted files that have more than one name.
    several_names: HashSet<u64>,
    /// Directories whose content is not counted yet.
    waiting: Vec<OwnedFd>,
}

impl TreeWalk {
    fn directory(&mut self, dir: OwnedFd, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            match self.waiting.len() < MAX_WAITING {
                true => self.waiting.push(dir),
                false => self.usage.is_partial = true,
            }
            return Ok(());
        }
        let mut entries = Dir::new(dir)?;
        while let Some(entry) = entries.read() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let parent = entries.fd()?;
            let stat = match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                found => found?,
            };
            if stat.st_dev != self.device {
                continue;
            }
            if !self.count(&stat) {
                self.waiting.clear();
                return Ok(());
            }
            if is_directory(&stat)
                && let Some(child) = open_child(parent, name)?
            {
                self.directory(child, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Returns false if there are too many entries.
    fn count(&mut self, stat: &Stat) -> bool {
        if stat.st_nlink > 1 && !is_directory(stat) && !self.several_names.insert(stat.st_ino) {
            return true;
        }
        self.usage.inodes += 1;
        if self.usage.inodes > MAX_ENTRIES {
            self.usage.is_partial = true;
            return false;
        }
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        let bytes = blocks.saturating_mul(BLOCK);
        self.usage.bytes = self.usage.bytes.saturating_add(bytes);
        true
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
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    use super::*;

    fn scratch() -> tempfile::TempDir {
        tempfile::Builder::new()
            .prefix("rubelet-t")
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

    /// Makes directories within each other; returns the last one.
    fn deep(tree: &Path, levels: usize) -> PathBuf {
        let mut path = tree.to_owned();
        path.extend(vec!["d"; levels]);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn deep_trees_are_measured_and_a_missing_one_is_reported() {
        let tree = scratch();
        let path = deep(tree.path(), MAX_DEPTH * 3);
        fs::write(path.join("file"), vec![1; 64 << 10]).unwrap();
        let found = of(tree.path()).unwrap();
        let all = u64::try_from(MAX_DEPTH).unwrap() * 3 + 2;
        assert_eq!((found.inodes, found.is_partial), (all, false));
        assert!(found.bytes >= 64 << 10);
        let missing = of(Path::new("/no/such/directory")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_tree_that_can_not_be_measured_uses_at_least_what_was() {
        let tree = scratch();
        let level = deep(tree.path(), MAX_DEPTH - 1);
        for number in 0..=MAX_WAITING {
            fs::create_dir_all(level.join(format!("{number}/d"))).unwrap();
        }
        let found = of(tree.path()).unwrap();
        assert!(found.is_partial);
        assert!(found.inodes >= 2 * u64::try_from(MAX_WAITING).unwrap());
    }
}
