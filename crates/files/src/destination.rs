//! Where copied files go, by the rules of `cp -a`.

use std::{
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::Path,
};

use rustix::io::Errno;

use crate::{
    error::FilesError,
    lookup::{Parts, Root, parts},
};

/// Where copied files go: into an existing directory, or to a name in one.
#[derive(Debug)]
pub struct Destination {
    pub(crate) directory: OwnedFd,
    /// The new name; `None` keeps that of the source.
    pub(crate) name: Option<Box<OsStr>>,
    /// User and group of new files; `None` for those of this process.
    pub(crate) owner: Option<(u32, u32)>,
}

impl Destination {
    /// A destination that the user of this process names.
    ///
    /// # Errors
    /// The directory is not there, or not accessible.
    pub fn local(path: &Path) -> Result<Self, FilesError> {
        Self::find(Root::Local, path.as_os_str().as_bytes())
    }

    pub(crate) fn find(root: Root<'_>, path: &[u8]) -> Result<Self, FilesError> {
        let place = |directory, name: Option<&[u8]>| Self {
            directory,
            name: name.map(|name| OsStr::from_bytes(name).into()),
            owner: None,
        };
        let failed = |error| FilesError::io("open", path, error);
        let missing = match root.directory(path) {
            Ok(directory) if !path.is_empty() => return Ok(place(directory, None)),
            Ok(_) => return Err(failed(Errno::NOENT)),
            Err(missing @ (Errno::NOENT | Errno::NOTDIR)) => missing,
            Err(error) => return Err(failed(error)),
        };
        match parts(path) {
            Parts {
                parent,
                name: Some(name),
                directory: false,
            } => {
                let directory = root.directory(parent);
                let directory = directory.map_err(|error| FilesError::io("open", parent, error))?;
                Ok(place(directory, Some(name)))
            }
            // A trailing slash means a directory.
            _ => Err(failed(missing)),
        }
    }

    pub(crate) fn owned_by(self, uid: u32, gid: u32) -> Self {
        Self {
            owner: Some((uid, gid)),
            ..self
        }
    }
}
