//! Removing directories of any depth: containers and archives can nest them arbitrarily, so nothing
//! here recurses, and few descriptors are open at a time.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, CWD, Dir, FileType, IFlags, Mode, OFlags, RenameFlags},
    io::Errno,
};

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Removes any file at `path`. A missing one is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_encoded_bytes())?;
    remove_at(CWD, &name)
}

/// Removes `name` in the directory `parent`. A missing one is fine.
///
/// A subdirectory is emptied except for its own subdirectories, which are moved up instead of being
/// walked into. So each step works on two levels.
pub(crate) fn remove_at(parent: impl AsFd, name: &CStr) -> io::Result<()> {
    if removed(&parent, name)? {
        return Ok(());
    }
    let victim = fs::openat(&parent, name, DIRECTORY, Mode::empty())?;
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
            let inner = match fs::openat(&victim, &*name, DIRECTORY, Mode::empty()) {
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

/// Removes a file or an empty directory. `false` for a non-empty directory.
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

/// Clears the inode flags that keep even root from removing a file: a privileged container can set
/// them.
fn soften(parent: impl AsFd, name: &CStr) {
    let hard = IFlags::IMMUTABLE | IFlags::APPEND;
    let clear = |file: &OwnedFd| {
        if let Ok(flags) = fs::ioctl_getflags(file)
            && flags.intersects(hard)
        {
            // A failure shows when the removal is retried.
            let _ = fs::ioctl_setflags(file, flags.difference(hard));
        }
    };
    if let Ok(parent) = fs::openat(&parent, c".", DIRECTORY, Mode::empty()) {
        clear(&parent);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_safe = fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        let kind = FileType::from_raw_mode(stat.st_mode);
        matches!(kind, FileType::RegularFile | FileType::Directory)
    });
    // Opening a device may have side effects.
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

fn names(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    // In batches, so that a huge directory needs no huge list; the caller repeats for the rest.
    const AT_ONCE: usize = 4096;
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
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

#[cfg(test)]
mod tests;
