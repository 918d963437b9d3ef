//! `fsGroup`: gives a volume to a group. Works on descriptors, so that a container that exchanges
//! files for symbolic links meanwhile can't redirect it, and leaves what is mounted in the volume
//! alone: that is no part of it, and may be a path of the host.

use std::{
    ffi::{CStr, OsStr},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

/// Why a volume's group can't be set.
#[derive(Debug, thiserror::Error)]
pub enum OwnershipError {
    /// The number is no group.
    #[error("fsGroup {0} is not a group of Linux")]
    Group(i64),
    /// A file can't be changed.
    #[error("cannot give {} to the group {group}", path.display())]
    Change {
        /// The file.
        path: PathBuf,
        /// The group.
        group: u32,
        /// Why.
        source: io::Error,
    },
    /// The folders are nested too deeply to keep all of them open.
    #[error("the folders in {} are nested more than {MAX_DEPTH} deep", path.display())]
    Depth {
        /// The volume.
        path: PathBuf,
    },
}

const MAX_DEPTH: usize = 256;
/// What the group may do with a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read it.
    Read,
    /// Read and write it.
    Write,
}

impl Access {
    /// Bits that files get.
    fn of_files(self) -> u32 {
        match self {
            Self::Read => 0o440,
            Self::Write => 0o660,
        }
    }

    /// Bits that folders get: also enterable, and what is made in them belongs to the group.
    fn of_folders(self) -> u32 {
        0o2110 | self.of_files()
    }
}

/// Gives the folder `dir` and all in it to the group, with this access for it. The folder itself comes last, so that it is right only if all the rest is; with `on_root_mismatch`
/// nothing is done if it is right.
///
/// # Errors
/// See [`OwnershipError`].
pub fn apply(
    dir: &Path,
    group: i64,
    access: Access,
    on_root_mismatch: bool,
) -> Result<(), OwnershipError> {
    // The last number means "unchanged" to the kernel.
    let gid = u32::try_from(group).ok().filter(|&gid| gid != u32::MAX);
    let gid = gid.ok_or(OwnershipError::Group(group))?;
    let mut walk = Walk {
        group: gid,
        access,
        path: dir.to_owned(),
        depth: 0,
    };
    let root =
        rustix::fs::open(dir, DIR_FLAGS, Mode::empty()).map_err(|error| walk.failed(error))?;
    if on_root_mismatch {
        let stat = rustix::fs::fstat(&root).map_err(|error| walk.failed(error))?;
        let bits = access.of_folders();
        if stat.st_gid == gid && stat.st_mode & bits == bits {
            return Ok(());
        }
    }
    walk.dir(root)
}

const DIR_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

struct Walk {
    group: u32,
    access: Access,
    /// Where the walk is, for errors.
    path: PathBuf,
    depth: usize,
}

impl Walk {
    /// The folder's own change comes after all that is in it. One descriptor per level is open.
    fn dir(&mut self, dir: OwnedFd) -> Result<(), OwnershipError> {
        if self.depth > MAX_DEPTH {
            return Err(OwnershipError::Depth {
                path: self.path.clone(),
            });
        }
        let mut entries = Dir::new(dir).map_err(|error| self.failed(error))?;
        while let Some(entry) = entries.read() {
            let entry = entry.map_err(|error| self.failed(error))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.path.push(OsStr::from_bytes(name.to_bytes()));
            self.depth += 1;
            let parent = entries.fd().map_err(|error| self.failed(error))?;
            if let Some(file) = open_entry(parent, name).map_err(|error| self.failed(error))? {
                self.entry(file)?;
            }
            self.depth -= 1;
            self.path.pop();
        }
        let dir = entries.fd().map_err(|error| self.failed(error))?;
        self.change(dir)
    }

    fn entry(&mut self, entry: OwnedFd) -> Result<(), OwnershipError> {
        let stat = rustix::fs::fstat(&entry).map_err(|error| self.failed(error))?;
        if kind(&stat) != FileType::Directory {
            return self.change(entry.as_fd());
        }
        // Of the folder that was opened, whatever has its name by now.
        let dir = rustix::fs::openat(&entry, c".", DIR_FLAGS, Mode::empty())
            .map_err(|error| self.failed(error))?;
        drop(entry);
        self.dir(dir)
    }

    fn change(&self, file: BorrowedFd<'_>) -> Result<(), OwnershipError> {
        set(file, self.group, self.access).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: Errno) -> OwnershipError {
        OwnershipError::Change {
            path: self.path.clone(),
            group: self.group,
            source: source.into(),
        }
    }
}

/// Opens a name in a folder, a symbolic link itself. `None` for what is mounted there, and for what
/// was removed since the folder was read.
fn open_entry(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Option<OwnedFd>> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    loop {
        match rustix::fs::openat2(parent, name, PATH_FLAGS, Mode::empty(), within) {
            Ok(entry) => return Ok(Some(entry)),
            // A mount, also of the same file system.
            Err(Errno::XDEV | Errno::NOENT) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

fn set(file: BorrowedFd<'_>, group: u32, access: Access) -> rustix::io::Result<()> {
    let gid = Some(Gid::from_raw(group));
    rustix::fs::chownat(file, c"", None, gid, AtFlags::EMPTY_PATH)?;
    // After the change of owner, which clears the setgid bit of files.
    let stat = rustix::fs::fstat(file)?;
    let bits = match kind(&stat) {
        // The mode of a symbolic link means nothing.
        FileType::Symlink => return Ok(()),
        FileType::Directory => access.of_folders(),
        _ => access.of_files(),
    };
    let mode = stat.st_mode & 0o7777;
    if mode | bits == mode {
        return Ok(());
    }
    // A descriptor that was opened as a path can be changed through /proc only.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmodat(
        CWD,
        path,
        Mode::from_raw_mode(mode | bits),
        AtFlags::empty(),
    )
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

    use rubelet_host::mount::{self, TmpfsOptions};

    use super::*;
    use crate::test_support::Scratch;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn group_and_mode(path: &Path) -> (u32, u32) {
        let found = fs::symlink_metadata(path).unwrap();
        (found.gid(), found.mode() & 0o7777)
    }

    fn tree(scratch: &Scratch) -> PathBuf {
        let volume = scratch.path().join("v");
        fs::create_dir_all(volume.join("d/e")).unwrap();
        for (file, mode) in [("f", 0o600), ("d/x", 0o755), ("d/e/r", 0o444)] {
            fs::write(volume.join(file), "").unwrap();
            chmod(&volume.join(file), mode);
        }
        for (dir, mode) in [("d/e", 0o700), ("d", 0o755), ("", 0o777)] {
            chmod(&volume.join(dir), mode);
        }
        let outside = scratch.path().join("outside");
        fs::write(&outside, "").unwrap();
        chmod(&outside, 0o600);
        symlink(&outside, volume.join("link")).unwrap();
        volume
    }

    #[test]
    fn all_files_are_given_to_the_group_and_links_are_not_followed() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let volume = tree(&scratch);
        for _ in 0..2 {
            apply(&volume, 2000, Access::Write, false).unwrap();
            for (file, mode) in [
                ("", 0o2777),
                ("d", 0o2775),
                ("d/e", 0o2770),
                ("f", 0o660),
                ("d/x", 0o775),
                ("d/e/r", 0o664),
            ] {
                assert_eq!(group_and_mode(&volume.join(file)), (2000, mode), "{file}");
            }
            assert_eq!(group_and_mode(&volume.join("link")).0, 2000);
            assert_eq!(group_and_mode(&scratch.path().join("outside")), (0, 0o600));
        }
    }

    #[test]
    fn on_root_mismatch_stops_at_a_root_that_is_right() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let volume = tree(&scratch);
        apply(&volume, 2000, Access::Write, true).unwrap();
        let file = volume.join("f");
        assert_eq!(group_and_mode(&file), (2000, 0o660));
        chmod(&file, 0o600);
        apply(&volume, 2000, Access::Write, true).unwrap();
        assert_eq!(group_and_mode(&file).1, 0o600, "the root was right");
        chmod(&volume, 0o2750);
        apply(&volume, 2000, Access::Write, true).unwrap();
        assert_eq!(group_and_mode(&file).1, 0o660, "the root's mode was wrong");
        apply(&volume, 3000, Access::Write, true).unwrap();
        assert_eq!(group_and_mode(&file).0, 3000, "the root's group was wrong");
    }

    #[test]
    fn numbers_that_are_no_group_are_refused() {
        for group in [-1, i64::from(u32::MAX), i64::MAX] {
            let error =
                apply(Path::new("/rubelet-t-missing"), group, Access::Write, false).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("fsGroup {group} is not a group of Linux")
            );
        }
    }

    #[test]
    fn folders_nested_without_end_are_an_error_and_no_overflow() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let volume = scratch.path().join("v");
        fs::create_dir_all(volume.join(vec!["d"; 300].join("/"))).unwrap();
        let error = apply(&volume, 2000, Access::Write, false).unwrap_err();
        assert!(
            error.to_string().ends_with("nested more than 256 deep"),
            "{error}"
        );
    }

    #[test]
    fn what_is_mounted_in_the_volume_keeps_its_group() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let volume = tree(&scratch);
        let host = scratch.path().join("host");
        fs::create_dir_all(host.join("d")).unwrap();
        fs::write(host.join("d/secret"), "").unwrap();
        chmod(&host.join("d/secret"), 0o600);
        chmod(&host, 0o700);
        // A bind mount of the same file system, on a folder and on a file, and another file system.
        mount::bind(&host, &volume.join("d/e")).unwrap();
        mount::bind(&scratch.path().join("outside"), &volume.join("f")).unwrap();
        fs::create_dir(volume.join("tmpfs")).unwrap();
        mount::tmpfs(&volume.join("tmpfs"), TmpfsOptions::default()).unwrap();
        let tmpfs = group_and_mode(&volume.join("tmpfs"));

        apply(&volume, 2000, Access::Write, false).unwrap();
        for (file, expected) in [
            (host.clone(), (0, 0o700)),
            (host.join("d/secret"), (0, 0o600)),
            (scratch.path().join("outside"), (0, 0o600)),
            (volume.join("tmpfs"), tmpfs),
            (volume.join("d/x"), (2000, 0o775)),
            (volume.join("d"), (2000, 0o2775)),
        ] {
            assert_eq!(group_and_mode(&file), expected, "{}", file.display());
        }
        // The volume itself may be a mount: that is one in memory.
        apply(&volume.join("tmpfs"), 2000, Access::Write, false).unwrap();
        assert_eq!(group_and_mode(&volume.join("tmpfs")).0, 2000);
    }

    #[test]
    fn what_is_exchanged_after_it_was_opened_is_not_followed() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let volume = tree(&scratch);
        let outside = scratch.path().join("other");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("x"), "").unwrap();
        chmod(&outside.join("x"), 0o600);
        chmod(&outside, 0o700);
        let mut walk = Walk {
            group: 2000,
            access: Access::Write,
            path: volume.clone(),
            depth: 0,
        };
        let root = rustix::fs::open(&volume, DIR_FLAGS, Mode::empty()).unwrap();
        let folder = open_entry(root.as_fd(), c"d").unwrap().unwrap();
        let file = open_entry(root.as_fd(), c"f").unwrap().unwrap();
        fs::rename(volume.join("d"), volume.join("moved")).unwrap();
        fs::rename(volume.join("f"), volume.join("file")).unwrap();
        symlink(&outside, volume.join("d")).unwrap();
        symlink(outside.join("x"), volume.join("f")).unwrap();
        walk.entry(folder).unwrap();
        walk.entry(file).unwrap();
        assert_eq!(group_and_mode(&outside), (0, 0o700));
        assert_eq!(group_and_mode(&outside.join("x")), (0, 0o600));
        assert_eq!(group_and_mode(&volume.join("moved/x")), (2000, 0o775));
        assert_eq!(group_and_mode(&volume.join("file")), (2000, 0o660));
        // A link that is there when it is opened is the link itself.
        let link = open_entry(root.as_fd(), c"d").unwrap().unwrap();
        walk.entry(link).unwrap();
        assert_eq!(group_and_mode(&volume.join("d")).0, 2000);
        assert_eq!(group_and_mode(&outside), (0, 0o700));
    }
}
