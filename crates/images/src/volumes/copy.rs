//! Copies a directory of an image: owners, modes, times, extended attributes, links, holes.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{CStr, CString, OsStr},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        self, AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, SeekFrom, Stat, Timespec,
        Timestamps, Uid, XattrFlags,
    },
    io::Errno,
};

use super::{
    merged::{MergedDir, MergedEntry, MergedTree, is},
    progress::CopyProgress,
};
use crate::unpack::is_content;

/// The owner on the host of a file, given its owner in the image.
pub(super) type OwnerMap<'a> = &'a dyn Fn(u32, u32) -> (u32, u32);

/// Bytes between two checks for cancellation.
const AT_ONCE: usize = 16 << 20;

const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Copies `from` into the empty directory `to`. For the relative paths `without`, only the
/// directories themselves are created. Fails soon after it was cancelled.
pub(super) fn fill(
    tree: &MergedTree,
    from: MergedDir,
    to: &Path,
    owner: OwnerMap<'_>,
    without: &[&Path],
    progress: &CopyProgress,
) -> io::Result<()> {
    let root = fs::openat(CWD, to, DIR, Mode::empty())?;
    let copy = TreeCopy {
        from: from.path.clone(),
        root,
        owner,
        progress,
    };
    let mut linked = HashMap::new();
    let mut times = Vec::new();
    let mut left = vec![from];
    while let Some(dir) = left.pop() {
        let path = copy.relative(&dir);
        let here = copy.open(path)?;
        let source = tree.topmost(&dir)?;
        let stat = fs::fstat(&source)?;
        copy.attributes(&source, &here, &stat)?;
        times.push((path.to_owned(), timestamps(&stat)));
        if without.contains(&path) {
            continue;
        }
        let mut parents = BTreeMap::new();
        for (name, found) in tree.entries(&dir)? {
            check(progress)?;
            match found {
                MergedEntry::Nothing => {}
                MergedEntry::Dir(child) => {
                    fs::mkdirat(&here, &name, Mode::RWXU)?;
                    left.push(child);
                }
                MergedEntry::Other(layer, stat) => {
                    let parent = match parents.entry(layer) {
                        std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
                        std::collections::btree_map::Entry::Vacant(vacant) => {
                            vacant.insert(tree.parent(layer, &dir)?)
                        }
                    };
                    copy.entry(parent, &here, path, &name, &stat, &mut linked)?;
                    progress.add_file();
                }
            }
        }
    }
    // Last, because each new entry changes the directory's times.
    for (path, times) in times.iter().rev() {
        fs::futimens(copy.open(path)?, times)?;
    }
    Ok(())
}

/// Gives `to` the attributes of a directory that the image does not have.
pub(super) fn empty(to: &Path, owner: OwnerMap<'_>) -> io::Result<()> {
    let dir = fs::openat(CWD, to, DIR, Mode::empty())?;
    let (uid, gid) = owner(0, 0);
    fs::fchown(&dir, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    Ok(fs::fchmod(&dir, Mode::from_raw_mode(0o755))?)
}

struct TreeCopy<'a> {
    /// The copied path in the image.
    from: PathBuf,
    root: OwnedFd,
    owner: OwnerMap<'a>,
    progress: &'a CopyProgress,
}

impl TreeCopy<'_> {
    fn relative<'p>(&self, dir: &'p MergedDir) -> &'p Path {
        dir.path.strip_prefix(&self.from).unwrap_or(&dir.path)
    }

    /// A directory of the copy.
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = match path.as_os_str().is_empty() {
            true => Path::new("."),
            false => path,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        loop {
            match fs::openat2(&self.root, path, DIR, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
    }

    /// Copies a file that is not a directory.
    fn entry(
        &self,
        from: &OwnedFd,
        to: &OwnedFd,
        path: &Path,
        name: &CStr,
        stat: &Stat,
        linked: &mut HashMap<(u64, u64), CString>,
    ) -> io::Result<()> {
        let mut first = None;
        if stat.st_nlink > 1 {
            let key = (stat.st_dev, stat.st_ino);
            if let Some(earlier) = linked.get(&key)
                && fs::linkat(&self.root, earlier, to, name, AtFlags::empty()).is_ok()
            {
                return Ok(());
            }
            // Copied again if there are too many links, or the path is too long for one.
            first = Some(key);
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(from, to, name, stat)?,
            FileType::Symlink => {
                let target = fs::readlinkat(from, name, Vec::new())?;
                fs::symlinkat(&target, to, name)?;
                self.attributes_at(to, name, stat)?;
            }
            kind @ (FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice) => {
                fs::mknodat(to, name, kind, Mode::empty(), stat.st_rdev)?;
                self.attributes_at(to, name, stat)?;
            }
            FileType::Directory | FileType::Unknown => return Err(Errno::INVAL.into()),
        }
        if let Some(key) = first {
            let path = path.join(OsStr::from_bytes(name.to_bytes()));
            linked.insert(key, CString::new(path.into_os_string().as_bytes())?);
        }
        Ok(())
    }

    fn file(&self, from: &OwnedFd, to: &OwnedFd, name: &CStr, stat: &Stat) -> io::Result<()> {
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = fs::openat(from, name, read, Mode::empty())?;
        let opened = fs::fstat(&source)?;
        if !is(&opened, FileType::RegularFile) || opened.st_ino != stat.st_ino {
            return Err(io::Error::other("a layer changed while it was read"));
        }
        let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = fs::openat(to, name, write, Mode::RUSR | Mode::WUSR)?;
        let size = u64::try_from(opened.st_size).unwrap_or(0);
        content(&source, &target, size, self.progress)?;
        self.attributes(&source, &target, &opened)?;
        Ok(fs::futimens(&target, &timestamps(&opened))?)
    }

    /// Owner first: a change of it clears capabilities and the setuid and setgid bits.
    fn attributes(&self, from: &OwnedFd, to: &OwnedFd, stat: &Stat) -> io::Result<()> {
        let (uid, gid) = self.owned(stat);
        fs::fchown(to, Some(uid), Some(gid))?;
        copy_xattrs(from.as_fd(), to.as_fd())?;
        Ok(fs::fchmod(to, permissions(stat))?)
    }

    /// Like [`Self::attributes`], for files that cannot be opened without side effects, such as
    /// devices.
    fn attributes_at(&self, to: &OwnedFd, name: &CStr, stat: &Stat) -> io::Result<()> {
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        let (uid, gid) = self.owned(stat);
        fs::chownat(to, name, Some(uid), Some(gid), nofollow)?;
        if !is(stat, FileType::Symlink) {
            fs::chmodat(to, name, permissions(stat), AtFlags::empty())?;
        }
        Ok(fs::utimensat(to, name, &timestamps(stat), nofollow)?)
    }

    fn owned(&self, stat: &Stat) -> (Uid, Gid) {
        let (uid, gid) = (self.owner)(stat.st_uid, stat.st_gid);
        (Uid::from_raw(uid), Gid::from_raw(gid))
    }
}

/// Copies the bytes of a file and keeps its holes: a file of an image may be larger than the disk.
fn content(from: &OwnedFd, to: &OwnedFd, size: u64, progress: &CopyProgress) -> io::Result<()> {
    if fs::ioctl_ficlone(to, from).is_ok() {
        progress.add_bytes(size);
        return Ok(());
    }
    fs::ftruncate(to, size)?;
    let mut at = 0;
    while at < size {
        at = match fs::seek(from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // The rest is a hole.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = fs::seek(from, SeekFrom::Hole(at))?.min(size);
        copy_range(from, to, at, end, progress)?;
        at = end;
    }
    Ok(())
}

fn copy_range(
    from: &OwnedFd,
    to: &OwnedFd,
    start: u64,
    end: u64,
    progress: &CopyProgress,
) -> io::Result<()> {
    let (mut read, mut written) = (start, start);
    while read < end {
        check(progress)?;
        let length = usize::try_from(end - read).map_or(AT_ONCE, |left| left.min(AT_ONCE));
        match fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), length) {
            Ok(0) => break,
            Ok(count) => progress.add_bytes(count as u64),
            Err(Errno::INTR) => {}
            // The file systems do not support it, or differ: layers and volumes may be on two.
            Err(Errno::XDEV | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
                return copy_bytes(from, to, read, end, progress);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn copy_bytes(
    from: &OwnedFd,
    to: &OwnedFd,
    mut at: u64,
    end: u64,
    progress: &CopyProgress,
) -> io::Result<()> {
    let mut buffer = vec![0; 128 << 10];
    while at < end {
        check(progress)?;
        let length = usize::try_from(end - at).map_or(buffer.len(), |left| left.min(buffer.len()));
        let count = rustix::io::pread(from, &mut buffer[..length], at)?;
        if count == 0 {
            break;
        }
        let mut done = 0;
        while done < count {
            done += rustix::io::pwrite(to, &buffer[done..count], at + done as u64)?;
        }
        at += count as u64;
        progress.add_bytes(count as u64);
    }
    Ok(())
}

fn check(progress: &CopyProgress) -> io::Result<()> {
    match progress.is_cancelled() {
        true => Err(io::Error::other("the copy was cancelled")),
        false => Ok(()),
    }
}

fn copy_xattrs(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    /// The kernel's limits (xattr(7)) for the list of names, and for one value.
    const LONGEST: usize = 64 << 10;
    // Most files have none: no second call.
    match fs::flistxattr(from, &mut [0; 0]) {
        Ok(0) | Err(Errno::OPNOTSUPP) => return Ok(()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut names = vec![0; LONGEST];
    let length = fs::flistxattr(from, names.as_mut_slice())?;
    names.truncate(length);
    let mut value = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| is_content(name))
    {
        value.resize(LONGEST, 0);
        let length = match fs::fgetxattr(from, name, value.as_mut_slice()) {
            Err(Errno::NODATA) => continue,
            length => length?,
        };
        match fs::fsetxattr(to, name, &value[..length], XattrFlags::empty()) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn permissions(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode & 0o7777)
}

fn timestamps(stat: &Stat) -> Timestamps {
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
    };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}
