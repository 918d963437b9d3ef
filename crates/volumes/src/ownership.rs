//! `fsGroup`: gives a volume to a group. Works on descriptors, so that a container that exchanges
//! files for symbolic links meanwhile can't redirect it.

use std::{
    ffi::{CString, OsString},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, Stat};

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
    walk.dir(&root)
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
    fn dir(&mut self, dir: &OwnedFd) -> Result<(), OwnershipError> {
        if self.depth > MAX_DEPTH {
            return Err(OwnershipError::Depth {
                path: self.path.clone(),
            });
        }
        for name in names(dir).map_err(|error| self.failed(error))? {
            self.path
                .push(OsString::from_vec(name.clone().into_bytes()));
            self.depth += 1;
            self.entry(dir, &name)?;
            self.depth -= 1;
            self.path.pop();
        }
        self.change(dir)
    }

    fn entry(&mut self, parent: &OwnedFd, name: &CString) -> Result<(), OwnershipError> {
        let entry = match rustix::fs::openat(parent, name, PATH_FLAGS, Mode::empty()) {
            Ok(entry) => entry,
            // A container removed it meanwhile.
            Err(rustix::io::Errno::NOENT) => return Ok(()),
            Err(error) => return Err(self.failed(error)),
        };
        let stat = rustix::fs::fstat(&entry).map_err(|error| self.failed(error))?;
        if kind(&stat) != FileType::Directory {
            return self.change(&entry);
        }
        let dir = rustix::fs::openat(&entry, c".", DIR_FLAGS, Mode::empty())
            .map_err(|error| self.failed(error))?;
        // One descriptor per level is enough.
        drop(entry);
        self.dir(&dir)
    }

    fn change(&self, file: &OwnedFd) -> Result<(), OwnershipError> {
        set(file, self.group, self.access).map_err(|error| self.failed(error))
    }

    fn failed(&self, source: rustix::io::Errno) -> OwnershipError {
        OwnershipError::Change {
            path: self.path.clone(),
            group: self.group,
            source: source.into(),
        }
    }
}

fn set(file: &OwnedFd, group: u32, access: Access) -> rustix::io::Result<()> {
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
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
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

fn names(dir: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

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
        let Some(scratch) = Scratch::as_root("fsGroup") else {
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
        let Some(scratch) = Scratch::as_root("OnRootMismatch") else {
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
        let Some(scratch) = Scratch::as_root("deep folders") else {
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
}
