//! Mounts and unmounts. Never runs a `mount` binary.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, AsRawFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx},
    io::Errno,
    mount::{MountFlags, UnmountFlags},
};

use crate::mountinfo::{self, MountinfoError};

/// Options of a tmpfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TmpfsOptions {
    /// Maximum size in bytes; the kernel's default is half of the memory.
    pub size: Option<u64>,
    /// Mode of its root directory; the kernel's default is 1777.
    pub mode: Option<u32>,
    /// Never swapped out; supported since Linux 6.4.
    pub noswap: bool,
}

/// Why a mount failed.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The kernel rejected a tmpfs.
    #[error("cannot mount a tmpfs ({options}) on {}", target.display())]
    Tmpfs {
        /// The mount point.
        target: PathBuf,
        /// The options as passed to the kernel.
        options: String,
        /// The error.
        source: io::Error,
    },
    /// The kernel rejected a bind mount.
    #[error("cannot bind-mount {what} on {}", target.display())]
    Bind {
        /// Path or description of the source.
        what: String,
        /// The mount point.
        target: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A path can't be resolved.
    #[error("cannot look at {}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The list of mounts can't be read.
    #[error(transparent)]
    Mountinfo(#[from] MountinfoError),
}

impl MountError {
    /// Whether the kernel does not support an option or rejects it in this namespace.
    #[must_use]
    pub fn is_invalid_option(&self) -> bool {
        matches!(self, Self::Tmpfs { source, .. }
            if source.kind() == io::ErrorKind::InvalidInput)
    }
}

/// Mounts a tmpfs on an existing directory.
///
/// # Errors
/// The kernel returns an error, for lack of privileges or because of an unknown option.
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

/// Bind-mounts a file or directory on an existing one of the same type. Mounts below the source are
/// not included.
///
/// # Errors
/// The kernel returns an error.
pub fn bind(source: &Path, target: &Path) -> Result<(), MountError> {
    rustix::mount::mount_bind(source, target).map_err(|error| MountError::Bind {
        what: source.display().to_string(),
        target: target.to_owned(),
        source: error.into(),
    })
}

/// Bind-mounts the file of an open descriptor, so that it can't be replaced between the check and
/// the mount. `what` describes it in errors.
///
/// # Errors
/// The kernel returns an error, or `/proc` is not mounted.
pub fn bind_fd(source: impl AsFd, what: &str, target: &Path) -> Result<(), MountError> {
    let path = format!("/proc/self/fd/{}", source.as_fd().as_raw_fd());
    rustix::mount::mount_bind(path, target).map_err(|error| MountError::Bind {
        what: what.to_owned(),
        target: target.to_owned(),
        source: error.into(),
    })
}

/// The result of an unmount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnmountOutcome {
    /// The topmost mount at that path was removed.
    Gone,
    /// Nothing was mounted there, or the path does not exist.
    WasNot,
    /// A process has a file open there; retry later.
    StillBusy,
}

/// Unmounts the topmost mount at a path, without following a symbolic link in the last component.
/// `lazy` detaches it immediately and lets the kernel clean up after the last user.
///
/// # Errors
/// The kernel returns an error other than those in [`UnmountOutcome`].
pub fn unmount(target: &Path, lazy: bool) -> io::Result<UnmountOutcome> {
    let mut flags = UnmountFlags::NOFOLLOW;
    if lazy {
        flags |= UnmountFlags::DETACH;
    }
    match rustix::mount::unmount(target, flags) {
        Ok(()) => Ok(UnmountOutcome::Gone),
        Err(Errno::INVAL | Errno::NOENT) => Ok(UnmountOutcome::WasNot),
        Err(Errno::BUSY) => Ok(UnmountOutcome::StillBusy),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file system is mounted exactly at a path; also detects bind mounts within one file
/// system.
///
/// # Errors
/// The path can't be inspected; a missing path is an error of that kind.
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
    // Kernels before 5.8 do not report it.
    let real = path.canonicalize().map_err(at)?;
    Ok(mountinfo::read()?
        .iter()
        .any(|entry| entry.mount_point == real))
}

#[cfg(test)]
mod tests;
