//! Walking and removing folders of any depth: containers and archives make them as deep as they
//! like, so nothing here recurses, and few descriptors are open at a time.

use std::{
    collections::HashSet,
    ffi::{CStr, CString},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{self, AtFlags, CWD, Dir, FileType, IFlags, Mode, OFlags, RenameFlags, ResolveFlags},
    io::Errno,
};

use crate::Usage;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes what is at `path`, whatever it is. Nothing there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    remove_at(CWD, &name)
}

/// Removes what is called `name` in the folder `parent`. Nothing there is fine.
///
/// A folder in the folder is emptied up to the folders in it, which are moved up instead of being
/// walked into. So each step works on two levels.
pub(crate) fn remove_at(parent: impl AsFd, name: &CStr) -> io::Result<()> {
    if removed(&parent, name)? {
        return Ok(());
    }
    let victim = fs::openat(&parent, name, FOLDER, Mode::empty())?;
    let mut moved = 0u64;
    loop {
        let names = names(&victim)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            if removed(&victim, &name)? {
                continue;
            }
            let inner = match fs::openat(&victim, &*name, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                inner => inner?,
            };
            for child in self::names(&inner)? {
                if !removed(&inner, &child)? {
                    move_up(&inner, &child, &victim, &mut moved)?;
                }
            }
            removed(&victim, &name)?;
        }
    }
    drop(victim);
    match fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes a file or an empty folder. `false` for a folder that has something in it.
fn removed(parent: impl AsFd, name: &CStr) -> io::Result<bool> {
    let mut softened = false;
    loop {
        let as_file = fs::unlinkat(&parent, name, AtFlags::empty());
        let done = match as_file {
            Err(Errno::ISDIR) => fs::unlinkat(&parent, name, AtFlags::REMOVEDIR),
            done => done,
        };
        match done {
            Ok(()) | Err(Errno::NOENT) => return Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(false),
            Err(Errno::PERM) if !softened => {
                soften(&parent, name);
                softened = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes back what keeps even root from removing something: a privileged container can set it.
fn soften(parent: impl AsFd, name: &CStr) {
    let hard = IFlags::IMMUTABLE | IFlags::APPEND;
    let clear = |file: &OwnedFd| {
        if let Ok(flags) = fs::ioctl_getflags(file)
            && flags.intersects(hard)
        {
            // What does not work shows when the removal is tried again.
            let _ = fs::ioctl_setflags(file, flags.difference(hard));
        }
    };
    if let Ok(parent) = fs::openat(&parent, c".", FOLDER, Mode::empty()) {
        clear(&parent);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_safe = fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::RegularFile | FileType::Directory)
    });
    // To open a device may have an effect.
    if is_safe && let Ok(file) = fs::openat(&parent, name, flags, Mode::empty()) {
        clear(&file);
    }
}

fn move_up(from: &OwnedFd, name: &CStr, to: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        let free = format!(".rubelet-removed-{moved}");
        match fs::renameat_with(from, name, to, free, RenameFlags::NOREPLACE) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    // A few at a time, so that a huge folder is no huge list; the caller comes back for the rest.
    const AT_ONCE: usize = 4096;
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
            if names.len() == AT_ONCE {
                break;
            }
        }
    }
    Ok(names)
}

/// What a folder and all in it take. What vanishes during the walk is not counted; what is deeper
/// than a path can be long is not, either. Files with several names count once.
pub(crate) fn measure(root: &Path) -> io::Result<Usage> {
    let root = fs::open(root, FOLDER, Mode::empty())?;
    let mut usage = Usage::default();
    let mut linked = HashSet::new();
    count(&fs::fstat(&root)?, &mut usage);
    let mut pending = vec![PathBuf::new()];
    while let Some(path) = pending.pop() {
        let folder = if path.as_os_str().is_empty() {
            root.try_clone()?
        } else {
            // Who lives in the folder may swap it for a link meanwhile.
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            match fs::openat2(&root, &path, FOLDER, Mode::empty(), resolve) {
                Ok(folder) => folder,
                Err(
                    Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG,
                ) => continue,
                Err(error) => return Err(error.into()),
            }
        };
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = match fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error.into()),
            };
            let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if is_folder {
                pending.push(path.join(std::ffi::OsStr::from_bytes(name.to_bytes())));
            } else if stat.st_nlink > 1 && !linked.insert(stat.st_ino) {
                continue;
            }
            count(&stat, &mut usage);
        }
    }
    Ok(usage)
}

fn count(stat: &fs::Stat, usage: &mut Usage) {
    usage.bytes += u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
    usage.inodes += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::Builder::new()
            .prefix("rbt-images-")
            .tempdir()
            .unwrap()
    }

    /// A chain of folders, longer than a path may be, with a file in each.
    fn dig(at: &Path, depth: usize) {
        let mut here = fs::open(at, FOLDER, Mode::empty()).unwrap();
        for _ in 0..depth {
            fs::mkdirat(&here, "deep", Mode::RWXU).unwrap();
            let file = OFlags::CREATE | OFlags::WRONLY;
            fs::openat(&here, "file", file, Mode::RWXU).unwrap();
            here = fs::openat(&here, "deep", FOLDER, Mode::empty()).unwrap();
        }
    }

    #[test]
    fn folders_deeper_than_any_stack_are_removed() {
        let dir = folder();
        let victim = dir.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        dig(&victim, 3000);
        std::fs::create_dir(victim.join(".rubelet-removed-1")).unwrap();
        measure(&victim).unwrap();
        remove(&victim).unwrap();
        assert!(!victim.exists());
        remove(&victim).unwrap();
    }

    #[test]
    fn what_a_container_made_immutable_is_removed() {
        let dir = folder();
        let deep = dir.path().join("victim/a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "x").unwrap();
        let mut immutable = 0;
        for path in ["victim/a/b/file", "victim/a/b", "victim/a"] {
            let file = std::fs::File::open(dir.path().join(path)).unwrap();
            // Not every disk has it, and not every test may set it.
            let set = fs::ioctl_getflags(&file)
                .and_then(|flags| fs::ioctl_setflags(&file, flags | IFlags::IMMUTABLE));
            immutable += usize::from(set.is_ok());
        }
        remove(&dir.path().join("victim")).unwrap();
        assert!(
            !dir.path().join("victim").exists(),
            "{immutable} were immutable"
        );
    }

    #[test]
    fn links_are_removed_not_followed() {
        let dir = folder();
        std::fs::create_dir_all(dir.path().join("victim/a/b")).unwrap();
        std::fs::write(dir.path().join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("victim/a/link")).unwrap();
        remove(&dir.path().join("victim")).unwrap();
        assert!(dir.path().join("kept").exists());
    }

    #[test]
    fn what_a_folder_takes_is_counted_once() {
        let dir = folder();
        std::fs::write(dir.path().join("a"), vec![1; 100_000]).unwrap();
        let before = measure(dir.path()).unwrap();
        assert_eq!(before.inodes, 2);
        assert!((98_304..300_000).contains(&before.bytes), "{before:?}");
        std::fs::hard_link(dir.path().join("a"), dir.path().join("b")).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("c")).unwrap();
        let after = measure(dir.path()).unwrap();
        assert_eq!((after.inodes, after.bytes), (3, before.bytes));
        assert!(measure(&dir.path().join("none")).is_err());
    }
}
