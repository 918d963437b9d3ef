//! `emptyDir`: a directory of the pod, on the node's disk or in memory.

pub(crate) mod quota;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rubelet_api::{resources::Bytes, volume::Medium};
use rubelet_host::{
    machine,
    mount::{self, MountError, TmpfsOptions},
};

pub use self::quota::{QuotaError, QuotaRequest};
use crate::{
    directory,
    dirs::{PodDirs, UnsafeName},
    ownership::{self, GroupAccess, OwnershipError},
};

/// A requested volume.
#[derive(Debug, Clone, Copy)]
pub struct EmptyDirRequest<'a> {
    /// Name of the volume.
    pub name: &'a str,
    /// `medium`.
    pub medium: Medium,
    /// Size of the tmpfs in bytes; ignored on disk, where eviction enforces the limit.
    pub size: Bytes,
    /// `securityContext.fsGroup`.
    pub fs_group: Option<i64>,
    /// `securityContext.fsGroupChangePolicy` is `OnRootMismatch`.
    pub on_root_mismatch: bool,
    /// Its quota, if it gets one.
    pub quota: Option<QuotaRequest>,
}

/// A prepared `emptyDir`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyDir {
    /// Its directory.
    pub path: PathBuf,
    /// A warning for the operator.
    pub warning: Option<String>,
}

/// An `emptyDir` can't be created.
#[derive(Debug, thiserror::Error)]
pub enum EmptyDirError {
    /// Its name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// Its directory or marker can't be created.
    #[error("cannot prepare {}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// Its tmpfs can't be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Nothing would hold it to its limit.
    #[error(transparent)]
    Quota(#[from] QuotaError),
    /// Its group can't be set.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
}

/// Creates the volume. A marker file shows that it is complete; then it is not changed, regardless
/// of changes by containers.
///
/// # Errors
/// See [`EmptyDirError`].
pub fn prepare(dirs: &PodDirs, request: &EmptyDirRequest<'_>) -> Result<EmptyDir, EmptyDirError> {
    let path = dirs.empty_dir(request.name)?;
    let marker = dirs.empty_dir_marker(request.name)?;
    let warning = set_up(&path, &marker, request)?;
    Ok(EmptyDir { path, warning })
}

/// Like [`prepare`], at any path. Returns a warning.
pub(crate) fn set_up(
    path: &Path,
    marker_dir: &Path,
    request: &EmptyDirRequest<'_>,
) -> Result<Option<String>, EmptyDirError> {
    let marker = marker_dir.join("ready");
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| EmptyDirError::Directory { path, source }
    };
    let there = path.is_dir();
    // A tmpfs is gone after a reboot, while the marker and the directory under it remain.
    let mounted = request.medium == Medium::Memory && there && mount::is_mount_point(path)?;
    let whole = match request.medium {
        Medium::Disk => there,
        Medium::Memory => mounted,
    };
    if whole && marker.exists() {
        return Ok(None);
    }
    if let Some(plugin) = path.parent() {
        directory::ensure(plugin, 0o755).map_err(at(plugin))?;
    }
    let mut warning = None;
    if !mounted {
        directory::ensure(path, 0o777).map_err(at(path))?;
        directory::set_mode(path, 0o777).map_err(at(path))?;
        if request.medium == Medium::Memory {
            warning = mount_tmpfs(path, request)?;
        } else if let Some(quota) = request.quota {
            warning = quota::set_up(path, quota)?;
        }
    }
    if let Some(group) = request.fs_group {
        ownership::apply(path, group, GroupAccess::Write, request.on_root_mismatch)?;
    }
    directory::ensure(marker_dir, 0o750).map_err(at(marker_dir))?;
    fs::write(&marker, "").map_err(at(&marker))?;
    Ok(warning)
}

/// True once the kernel has rejected `noswap`; retries would flood its log.
static NOSWAP_REFUSED: AtomicBool = AtomicBool::new(false);

/// Mounts a tmpfs that is never swapped (`noswap`, Linux 6.4) if the kernel supports it. Returns a
/// warning otherwise.
fn mount_tmpfs(
    path: &Path,
    request: &EmptyDirRequest<'_>,
) -> Result<Option<String>, EmptyDirError> {
    let options = |noswap| TmpfsOptions {
        size: Some(request.size).filter(|&size| size > 0),
        mode: None,
        noswap,
    };
    if !NOSWAP_REFUSED.load(Ordering::Relaxed) {
        match mount::tmpfs(path, options(true)) {
            Ok(()) => return Ok(None),
            Err(error) if error.is_invalid_option() => {}
            Err(error) => return Err(error.into()),
        }
    }
    mount::tmpfs(path, options(false))?;
    // Only now is it certain that the option was the cause.
    NOSWAP_REFUSED.store(true, Ordering::Relaxed);
    // Unknown counts as on: the warning is about secrets on a disk.
    let swaps = machine::swap_is_on(Path::new("/")).unwrap_or(true);
    Ok(swaps.then(|| {
        format!(
            "the contents of the volume {} may be swapped to disk: the kernel has no noswap \
             option for tmpfs here",
            request.name
        )
    }))
}

#[cfg(test)]
mod tests;
