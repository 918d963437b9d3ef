//! Owner, permissions, extended attributes and times.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use rustix::{
    fs::{self, AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags},
    io::Errno,
};

use crate::archive::{Entry, Kind};

const OPAQUE: &str = "trusted.overlay.opaque";

/// Marks a directory as opaque: it hides that of the layers below.
pub(super) fn make_opaque(directory: impl AsFd) -> Result<(), Errno> {
    fs::fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())
}

/// Reports whether a directory is opaque.
pub(crate) fn is_opaque(directory: impl AsFd) -> bool {
    let mut value = [0_u8; 4];
    fs::fgetxattr(directory, OPAQUE, &mut value)
        .is_ok_and(|length| value.get(..length) == Some(b"y".as_slice()))
}

/// Reports whether a file is an overlayfs whiteout.
pub(crate) fn is_whiteout(stat: &fs::Stat) -> bool {
    fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::CharacterDevice && stat.st_rdev == 0
}

pub(super) fn times(entry: &Entry) -> Timestamps {
    let time = Timespec {
        tv_sec: entry.mtime.0,
        tv_nsec: entry.mtime.1.into(),
    };
    Timestamps {
        last_access: time,
        last_modification: time,
    }
}

/// The entry's owner. Neither ID may be -1, which means `unchanged`.
pub(super) fn owner(entry: &Entry) -> Option<(Uid, Gid)> {
    let valid = |id: u64| u32::try_from(id).ok().filter(|id| *id != u32::MAX);
    Some((
        Uid::from_raw(valid(entry.uid)?),
        Gid::from_raw(valid(entry.gid)?),
    ))
}

/// The failed step, for a message.
pub(super) type StepFailure = (&'static str, Errno);

/// Sets all attributes of an open file or directory, except its times.
pub(super) fn set_open(
    file: BorrowedFd<'_>,
    entry: &Entry,
    owner: (Uid, Gid),
) -> Result<(), StepFailure> {
    let (uid, gid) = owner;
    fs::fchown(file, Some(uid), Some(gid)).map_err(|e| ("set the owner of", e))?;
    for (name, value) in chosen(entry) {
        let set = fs::fsetxattr(file, name, value, XattrFlags::empty());
        ignore_unsupported(set)?;
    }
    let mode = Mode::from_raw_mode(entry.mode);
    fs::fchmod(file, mode).map_err(|e| ("set the mode of", e))
}

/// Sets all attributes of files that can't be opened without side effects: links, pipes, devices.
pub(super) fn set_at(
    directory: impl AsFd,
    name: &[u8],
    entry: &Entry,
    owner: (Uid, Gid),
) -> Result<(), StepFailure> {
    let (uid, gid) = owner;
    let nofollow = AtFlags::SYMLINK_NOFOLLOW;
    fs::chownat(&directory, name, Some(uid), Some(gid), nofollow)
        .map_err(|e| ("set the owner of", e))?;
    let mut path = format!("/proc/self/fd/{}/", directory.as_fd().as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    for (name, value) in chosen(entry) {
        // The kernel allows these on files and directories only.
        if !name.starts_with(b"user.") {
            let set = fs::lsetxattr(path.as_slice(), name, value, XattrFlags::empty());
            ignore_unsupported(set)?;
        }
    }
    if entry.kind != Kind::Symlink {
        let mode = Mode::from_raw_mode(entry.mode);
        fs::chmodat(&directory, name, mode, AtFlags::empty())
            .map_err(|e| ("set the mode of", e))?;
    }
    fs::utimensat(&directory, name, &times(entry), nofollow).map_err(|e| ("set the times of", e))
}

fn chosen(entry: &Entry) -> impl Iterator<Item = (&[u8], &[u8])> {
    let all = entry.xattrs.iter();
    let all = all.map(|(name, value)| (name.as_slice(), value.as_slice()));
    all.filter(|(name, _)| is_content(name))
}

/// Reports whether an extended attribute is part of the image, not of the machine that created it.
pub(crate) fn is_content(name: &[u8]) -> bool {
    let is_user = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
    let is_acl = matches!(
        name,
        b"system.posix_acl_access" | b"system.posix_acl_default"
    );
    (is_user || is_acl || name == b"security.capability") && !name.contains(&0)
}

fn ignore_unsupported(set: Result<(), Errno>) -> Result<(), StepFailure> {
    match set {
        // Without support in the file system, programs that need them fail at run time.
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(("set an extended attribute of", error)),
    }
}
