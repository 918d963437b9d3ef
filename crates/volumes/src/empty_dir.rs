//! `emptyDir`: a folder of the pod, on the node's disk or in memory.

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

use crate::{
    dirs::{PodDirs, UnsafeName},
    folder,
    ownership::{self, Access, OwnershipError},
};

/// What is wanted.
#[derive(Debug, Clone, Copy)]
pub struct EmptyDirRequest<'a> {
    /// Name of the volume.
    pub name: &'a str,
    /// `medium`.
    pub medium: Medium,
    /// Size of the tmpfs in bytes; means nothing on disk, where the limit is enforced by eviction.
    pub size: Bytes,
    /// `securityContext.fsGroup`.
    pub fs_group: Option<i64>,
    /// `securityContext.fsGroupChangePolicy` is `OnRootMismatch`.
    pub on_root_mismatch: bool,
}

/// An `emptyDir` that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmptyDir {
    /// Its folder.
    pub path: PathBuf,
    /// What the operator should know.
    pub warning: Option<String>,
}

/// Why an `emptyDir` can't be made.
#[derive(Debug, thiserror::Error)]
pub enum EmptyDirError {
    /// Its name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// Its folder or marker can't be made.
    #[error("cannot prepare {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its tmpfs can't be mounted.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// Its group can't be set.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
}

/// Makes the volume. A marker file tells that it was completed before; then it is left alone,
/// whatever containers have made of it since.
///
/// # Errors
/// See [`EmptyDirError`].
pub fn prepare(dirs: &PodDirs, request: &EmptyDirRequest<'_>) -> Result<EmptyDir, EmptyDirError> {
    let path = dirs.empty_dir(request.name)?;
    let marker = dirs.empty_dir_marker(request.name)?;
    let warning = set_up(&path, &marker, request)?;
    Ok(EmptyDir { path, warning })
}

/// As [`prepare`], at any place. Returns a warning.
pub(crate) fn set_up(
    path: &Path,
    marker_dir: &Path,
    request: &EmptyDirRequest<'_>,
) -> Result<Option<String>, EmptyDirError> {
    let marker = marker_dir.join("ready");
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| EmptyDirError::Folder { path, source }
    };
    let there = path.is_dir();
    // A tmpfs is gone after a reboot, while the marker and the folder under it stay.
    let mounted = request.medium == Medium::Memory && there && mount::is_mount_point(path)?;
    let whole = match request.medium {
        Medium::Disk => there,
        Medium::Memory => mounted,
    };
    if whole && marker.exists() {
        return Ok(None);
    }
    if let Some(plugin) = path.parent() {
        folder::ensure(plugin, 0o755).map_err(at(plugin))?;
    }
    let mut warning = None;
    if !mounted {
        folder::ensure(path, 0o777).map_err(at(path))?;
        folder::set_mode(path, 0o777).map_err(at(path))?;
        if request.medium == Medium::Memory {
            warning = mount_tmpfs(path, request)?;
        }
    }
    if let Some(group) = request.fs_group {
        ownership::apply(path, group, Access::Write, request.on_root_mismatch)?;
    }
    folder::ensure(marker_dir, 0o750).map_err(at(marker_dir))?;
    fs::write(&marker, "").map_err(at(&marker))?;
    Ok(warning)
}

/// Whether the kernel refused `noswap` before; asking again would fill its log.
static NOSWAP_REFUSED: AtomicBool = AtomicBool::new(false);

/// What is in memory must not reach the disk by way of swap, where the kernel can promise that.
/// Returns a warning where it can't.
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
    // Only now is it clear that the option was to blame.
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
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::test_support::Scratch;

    fn request(medium: Medium) -> EmptyDirRequest<'static> {
        EmptyDirRequest {
            name: "v",
            medium,
            size: 1 << 20,
            fs_group: None,
            on_root_mismatch: false,
        }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    #[test]
    fn a_folder_on_disk_is_open_to_all_and_marked_ready() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let made = prepare(&dirs, &request(Medium::Disk)).unwrap();
        assert_eq!(mode(&made.path), 0o777);
        assert!(
            dirs.plugins()
                .join("kubernetes.io~empty-dir/v/ready")
                .is_file()
        );
    }

    #[test]
    fn a_group_owns_the_folder_and_what_is_made_in_it() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let dirs = scratch.dirs();
        let with_group = EmptyDirRequest {
            fs_group: Some(2000),
            ..request(Medium::Disk)
        };
        let path = prepare(&dirs, &with_group).unwrap().path;
        assert_eq!(
            (path.metadata().unwrap().gid(), mode(&path)),
            (2000, 0o2777)
        );
        // Ready: containers may do with it what they like.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        prepare(&dirs, &with_group).unwrap();
        assert_eq!(mode(&path), 0o700);
    }

    #[test]
    fn a_crash_before_the_marker_repeats_all_steps() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let dirs = scratch.dirs();
        for medium in [Medium::Disk, Medium::Memory] {
            let request = EmptyDirRequest {
                fs_group: Some(2000),
                ..request(medium)
            };
            let path = prepare(&dirs, &request).unwrap().path;
            fs::remove_file(dirs.plugins().join("kubernetes.io~empty-dir/v/ready")).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .unwrap();
            prepare(&dirs, &request).unwrap();
            assert_eq!(path.metadata().unwrap().gid(), 2000);
            assert_eq!(mode(&path) & 0o2770, 0o2770);
        }
        assert_eq!(scratch.mounts().len(), 1, "mounted once");
    }

    #[test]
    fn a_volume_in_memory_has_its_size_and_is_mounted_once() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let dirs = scratch.dirs();
        let path = prepare(&dirs, &request(Medium::Memory)).unwrap().path;
        fs::write(path.join("f"), "x").unwrap();
        prepare(&dirs, &request(Medium::Memory)).unwrap();
        assert!(path.join("f").exists());
        assert_eq!(scratch.mounts().len(), 1);
        assert_eq!(scratch.mounts()[0].fs_type, "tmpfs");
        let stat = rustix::fs::statvfs(&path).unwrap();
        assert_eq!(stat.f_blocks * stat.f_frsize, 1 << 20);
        assert_eq!(mode(&path), 0o1777);
    }

    #[test]
    fn a_volume_in_memory_comes_back_after_a_reboot() {
        let Some(scratch) = Scratch::as_root() else {
            return;
        };
        let dirs = scratch.dirs();
        let path = prepare(&dirs, &request(Medium::Memory)).unwrap().path;
        mount::unmount(&path, false).unwrap();
        prepare(&dirs, &request(Medium::Memory)).unwrap();
        assert!(mount::is_mount_point(&path).unwrap());
    }

    #[test]
    fn a_volume_that_was_deleted_by_hand_is_made_again() {
        let scratch = Scratch::new();
        let dirs = scratch.dirs();
        let path = prepare(&dirs, &request(Medium::Disk)).unwrap().path;
        fs::remove_dir(&path).unwrap();
        prepare(&dirs, &request(Medium::Disk)).unwrap();
        assert_eq!(mode(&path), 0o777);
    }
}
