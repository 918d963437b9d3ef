//! Mounting and unmounting. Nothing here runs a `mount` binary.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, AsRawFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx},
    io::Errno,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags},
};

use crate::mountinfo::{self, MountinfoError};

/// Options of a tmpfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TmpfsOptions {
    /// Most bytes it may hold; the kernel's default is half of the memory.
    pub size: Option<u64>,
    /// Mode of its root folder; the kernel's default is 1777.
    pub mode: Option<u32>,
    /// Never swapped out; known to kernels from 6.4.
    pub noswap: bool,
}

/// Why something could not be mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel refused a tmpfs.
    #[error("cannot mount a tmpfs ({options}) on {}", target.display())]
    Tmpfs {
        /// Where.
        target: PathBuf,
        /// The options as passed to the kernel.
        options: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused a bind mount.
    #[error("cannot bind-mount {what} on {}", target.display())]
    Bind {
        /// Path or description of what was to be mounted.
        what: String,
        /// Where.
        target: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused to change the propagation.
    #[error("cannot make the mount at {} shared", target.display())]
    Share {
        /// Where.
        target: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A path can't be followed.
    #[error("cannot look at {}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The list of mounts can't be had.
    #[error(transparent)]
    Mountinfo(#[from] MountinfoError),
}

impl MountError {
    /// Whether the kernel doesn't know an option or refuses it in this namespace.
    #[must_use]
    pub fn is_invalid_option(&self) -> bool {
        matches!(self, Self::Tmpfs { source, .. }
            if source.kind() == io::ErrorKind::InvalidInput)
    }
}

/// Mounts a tmpfs on an existing folder.
///
/// # Errors
/// The kernel refuses, for want of rights or because of an option it doesn't know.
pub fn tmpfs(target: &Path, options: TmpfsOptions) -> Result<(), MountError> {
    let mut list = Vec::new();
    if let Some(size) = options.size {
        list.push(format!("size={size}"));
    }
    if let Some(mode) = options.mode {
        list.push(format!("mode={mode:o}"));
    }
    if options.noswap {
        list.push("noswap".to_owned());
    }
    let text = list.join(",");
    let data = CString::new(text.clone()).expect("numbers and fixed words have no zero byte");
    rustix::mount::mount(
        "tmpfs",
        target,
        "tmpfs",
        MountFlags::empty(),
        data.as_c_str(),
    )
    .map_err(|source| MountError::Tmpfs {
        target: target.to_owned(),
        options: text,
        source: source.into(),
    })
}

/// Bind-mounts a file or folder on an existing one of the same kind. Mounts below the source are
/// not taken along.
///
/// # Errors
/// The kernel refuses.
pub fn bind(source: &Path, target: &Path) -> Result<(), MountError> {
    rustix::mount::mount_bind(source, target).map_err(|error| MountError::Bind {
        what: source.display().to_string(),
        target: target.to_owned(),
        source: error.into(),
    })
}

/// Bind-mounts what an open descriptor refers to, so that nobody can exchange it between the
/// check and the mount. `what` describes it in errors.
///
/// # Errors
/// The kernel refuses, or `/proc` is not mounted.
pub fn bind_fd(source: impl AsFd, what: &str, target: &Path) -> Result<(), MountError> {
    let path = format!("/proc/self/fd/{}", source.as_fd().as_raw_fd());
    rustix::mount::mount_bind(path, target).map_err(|error| MountError::Bind {
        what: what.to_owned(),
        target: target.to_owned(),
        source: error.into(),
    })
}

/// What became of an unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unmounted {
    /// The topmost mount at that place is gone.
    Gone,
    /// Nothing was mounted there, or the place doesn't exist.
    WasNot,
    /// Something has a file open there; try again later.
    StillBusy,
}

/// Unmounts the topmost mount at a path, without following a symbolic link in the last component.
/// `lazy` detaches it at once and lets the kernel clean up when the last user is gone.
///
/// # Errors
/// The kernel refuses for another reason than those in [`Unmounted`].
pub fn unmount(target: &Path, lazy: bool) -> io::Result<Unmounted> {
    let mut flags = UnmountFlags::NOFOLLOW;
    if lazy {
        flags |= UnmountFlags::DETACH;
    }
    match rustix::mount::unmount(target, flags) {
        Ok(()) => Ok(Unmounted::Gone),
        Err(Errno::INVAL | Errno::NOENT) => Ok(Unmounted::WasNot),
        Err(Errno::BUSY) => Ok(Unmounted::StillBusy),
        Err(error) => Err(error.into()),
    }
}

/// Whether something is mounted exactly at a path; also sees bind mounts within one file system.
///
/// # Errors
/// The path can't be looked at; a path that doesn't exist is an error of that kind.
pub fn is_mount_point(path: &Path) -> Result<bool, MountError> {
    let at = |source: io::Error| MountError::Path {
        path: path.to_owned(),
        source,
    };
    let flags = AtFlags::NO_AUTOMOUNT | AtFlags::SYMLINK_NOFOLLOW;
    let stat = statx(CWD, path, flags, StatxFlags::empty()).map_err(|error| at(error.into()))?;
    if stat
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT)
    {
        return Ok(stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
    }
    // Kernels before 5.8 don't say.
    let real = path.canonicalize().map_err(at)?;
    Ok(mountinfo::read()?
        .iter()
        .any(|entry| entry.mount_point == real))
}

/// Makes sure that mounts below `dir` reach other mount namespaces and the other way round, as
/// containers with mount propagation need it. If the mount on which `dir` lies is not shared,
/// `dir` is bind-mounted on itself and shared. Returns whether anything was changed.
///
/// # Errors
/// The kernel refuses, or `dir` doesn't exist.
pub fn make_rshared(dir: &Path) -> Result<bool, MountError> {
    let real = dir.canonicalize().map_err(|source| MountError::Path {
        path: dir.to_owned(),
        source,
    })?;
    let mounts = mountinfo::read()?;
    let on = mountinfo::containing(&mounts, &real);
    if on.is_some_and(mountinfo::MountEntry::is_shared) {
        return Ok(false);
    }
    // A crash between the two calls leaves a private mount on `dir`: it needs no second one.
    if on.is_none_or(|entry| entry.mount_point != real) {
        bind(&real, &real)?;
    }
    let flags = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    rustix::mount::mount_change(&real, flags).map_err(|source| MountError::Share {
        target: real.clone(),
        source: source.into(),
    })?;
    Ok(true)
}

#[cfg(test)]
mod tests;
