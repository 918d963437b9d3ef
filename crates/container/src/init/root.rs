//! A mount namespace of the container's own, and its root.

use std::{os::fd::OwnedFd, path::Path};

use rustix::{
    fs::CWD,
    mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount},
    process::{chdir, fchdir, pivot_root},
    thread::UnshareFlags,
};

use crate::{
    filesystem::attach,
    step::{Failure, Step},
    sys::clone::unshare,
};

/// Leaves for a mount namespace (and others) of its own, from which nothing propagates.
pub(crate) fn enter_mount_namespace(flags: UnshareFlags) -> Result<(), Failure> {
    unshare(flags).step(|| "cannot make a mount namespace")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).step(|| "cannot separate the mounts from those of the host")
}

/// Goes to the folder on which the root file system will be mounted. To be called by the host's root:
/// inside of a user namespace nobody may pass the folders above it. A working folder is taken along
/// into a new mount namespace, other than a descriptor.
pub(crate) fn go_to(at: &Path) -> Result<(), Failure> {
    chdir(at).step(|| format!("cannot mount the root file system on {}", at.display()))
}

/// Attaches the root file system on the working folder and makes it the root; the host's mounts are
/// gone after that.
pub(crate) fn enter(root: &OwnedFd) -> Result<(), Failure> {
    attach(root, CWD).step(|| "cannot mount the root file system")?;
    fchdir(root).step(|| "cannot enter the root file system")?;
    // The old root comes to lie on top of the new one, where it can be detached without any
    // folder for it.
    pivot_root(".", ".").step(|| {
        "cannot make it the root (pivot_root; a host that runs from its initramfs can't hold containers)"
    })?;
    unmount(".", UnmountFlags::DETACH).step(|| "cannot detach the host's file systems")?;
    chdir("/").step(|| "cannot go to the container's root")
}
