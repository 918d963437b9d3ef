//! From a path to its parent directory.

use std::{
    ffi::OsStr,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use crate::error::{FilesError, shown};

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);
/// A rename anywhere on the machine can make openat2(2) fail with EAGAIN: `..` may have left the
/// root meanwhile.
const TRIES: usize = 100;

/// Where paths start, and how links are resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Root<'a> {
    /// The process's own root and working directory.
    Local,
    /// The root of a container; links are resolved as a process in it resolves them.
    Container(BorrowedFd<'a>),
}

impl Root<'_> {
    /// Opens a directory, following links.
    pub(crate) fn directory(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { b"." } else { path };
        match self {
            Self::Local => fs::openat(CWD, path, DIRECTORY, Mode::empty()),
            Self::Container(root) => {
                let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
                open_beneath(root, path, DIRECTORY, resolve)
            }
        }
    }
}

/// openat2(2), retried on EAGAIN.
pub(crate) fn open_beneath(
    root: impl AsFd,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    for _ in 0..TRIES {
        match fs::openat2(&root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN) => {}
            opened => return opened,
        }
    }
    Err(Errno::AGAIN)
}

/// A path as it was given, in parts.
pub(crate) struct Parts<'a> {
    /// The directory; empty for the current one.
    pub(crate) parent: &'a [u8],
    /// The last component; `None` if the path is a directory by its form: `/`, `.`, `x/.`, `x/..`.
    pub(crate) name: Option<&'a [u8]>,
    /// Whether it must be a directory.
    pub(crate) directory: bool,
}

pub(crate) fn parts(path: &[u8]) -> Parts<'_> {
    let slashes = path.iter().rev().take_while(|byte| **byte == b'/').count();
    let trimmed = &path[..path.len() - slashes];
    let split = trimmed.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = match split {
        // The slash is kept: without it, `/x` would be in the current directory.
        Some(slash) => trimmed.split_at(slash + 1),
        None => (&b""[..], trimmed),
    };
    match name {
        b"" | b"." | b".." => Parts {
            parent: path,
            name: None,
            directory: true,
        },
        name => Parts {
            parent,
            name: Some(name),
            directory: slashes > 0,
        },
    }
}

/// What to copy.
#[derive(Debug)]
pub struct Source {
    pub(crate) parent: OwnedFd,
    /// `None` for the contents of the directory.
    pub(crate) name: Option<Box<OsStr>>,
}

impl Source {
    /// A file or directory that the user of this process names. Links on the way to it are
    /// followed, and it itself is not; with a trailing `/.`, it is the contents of a directory.
    ///
    /// # Errors
    /// It does not exist, or is not accessible.
    pub fn local(path: &Path) -> Result<Self, FilesError> {
        Self::find(Root::Local, path.as_os_str().as_bytes())
    }

    pub(crate) fn find(root: Root<'_>, path: &[u8]) -> Result<Self, FilesError> {
        let failed = |error| FilesError::io("open", path, error);
        if path.is_empty() {
            return Err(FilesError::NotFound(shown(path)));
        }
        let Parts {
            parent,
            name,
            directory,
        } = parts(path);
        let parent = root.directory(parent).map_err(failed)?;
        if let Some(name) = name {
            let found = fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
            if directory && !fs::FileType::from_raw_mode(found.st_mode).is_dir() {
                return Err(failed(Errno::NOTDIR));
            }
        }
        Ok(Self {
            parent,
            name: name.map(|name| OsStr::from_bytes(name).into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_directory_and_a_name() {
        for (path, parent, name, directory) in [
            ("a", "", Some("a"), false),
            ("a/", "", Some("a"), true),
            ("/a", "/", Some("a"), false),
            ("/a//b//", "/a//", Some("b"), true),
            ("/", "/", None, true),
            (".", ".", None, true),
            ("a/.", "a/.", None, true),
            ("a/..", "a/..", None, true),
            ("a/./", "a/./", None, true),
        ] {
            let found = parts(path.as_bytes());
            assert_eq!(
                (found.parent, found.name, found.directory),
                (parent.as_bytes(), name.map(str::as_bytes), directory),
                "{path}"
            );
        }
    }
}
