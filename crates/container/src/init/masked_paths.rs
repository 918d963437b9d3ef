//! Masked and read-only paths of a container.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use crate::{
    filesystem::{Filesystem, attach, copy},
    in_root::{RootDir, is_dir},
    plan::ContainerPlan,
    step::{Step, StepError},
    sys::mount_attr::{self, MountAttr},
};

/// Applies `maskedPaths` and `readonlyPaths` of the specification. `null` is a mount of
/// `/dev/null`.
pub(crate) fn mask_paths(
    plan: &ContainerPlan<'_>,
    null: Option<OwnedFd>,
    root: &RootDir,
) -> Result<(), StepError> {
    let linux = &plan.spec.linux;
    for path in &linux.readonly_paths {
        protect(Path::new(path), root).step(|| format!("cannot make {path} read-only"))?;
    }
    let mut cover = MaskMounts { null, empty: None };
    let mut attached = (false, false);
    for path in &linux.masked_paths {
        let what = || format!("cannot mask {path}");
        let Some(target) = find(Path::new(path), root).step(what)? else {
            continue;
        };
        let directory = is_dir(&target).step(what)?;
        let used = if directory {
            &mut attached.1
        } else {
            &mut attached.0
        };
        let mount = cover.of_kind(directory)?;
        if *used {
            // The first one is attached; further ones are copies of it.
            let copy = copy(mount.as_fd(), false).step(what)?;
            attach(&copy, &target).step(what)?;
        } else {
            attach(mount, &target).step(what)?;
            *used = true;
        }
    }
    Ok(())
}

/// The mounts that cover paths.
struct MaskMounts {
    null: Option<OwnedFd>,
    empty: Option<OwnedFd>,
}

impl MaskMounts {
    fn of_kind(&mut self, directory: bool) -> Result<&OwnedFd, StepError> {
        let missing = || StepError::new("no mount to mask a path with");
        if !directory {
            return self.null.as_ref().ok_or_else(missing);
        }
        if self.empty.is_none() {
            let fs = Filesystem::open("tmpfs")?;
            let _ = fs.set("source", "tmpfs");
            fs.option("ro")?;
            self.empty = Some(fs.mount(libc::MOUNT_ATTR_RDONLY)?);
        }
        self.empty.as_ref().ok_or_else(missing)
    }
}

fn protect(path: &Path, root: &RootDir) -> io::Result<()> {
    let Some(target) = find(path, root)? else {
        return Ok(());
    };
    // A separate mount: the flag must not change the mount that the path is part of.
    let mount = copy(target.as_fd(), true)?;
    mount_attr::change(&mount, &MountAttr::read_only(), true)?;
    attach(&mount, &target)
}

/// Opens a path; `None` if it does not exist.
fn find(path: &Path, root: &RootDir) -> io::Result<Option<OwnedFd>> {
    match root.find(path) {
        Ok(fd) => Ok(Some(fd)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => Ok(None),
            _ => Err(error),
        },
    }
}
