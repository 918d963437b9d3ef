//! The container's mount namespace and its root.

use std::{os::fd::OwnedFd, path::Path};

use rustix::{
    fs::CWD,
    mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount},
    process::{chdir, fchdir, pivot_root},
    thread::UnshareFlags,
};

use crate::{
    filesystem::attach,
    step::{Step, StepError},
    sys::clone::unshare,
};

/// Creates a mount namespace (and others), from which nothing propagates to the host.
pub(crate) fn enter_mount_namespace(flags: UnshareFlags) -> Result<(), StepError> {
    unshare(flags).step(|| "cannot create a mount namespace")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).step(|| "cannot make the mounts private")
}

/// Changes to the directory on which the root file system will be mounted. Must run as the host's
/// root, because processes of a user namespace may not search its parents. unshare(2) moves the
/// working directory to the new mount namespace, but no descriptors.
pub(crate) fn go_to(at: &Path) -> Result<(), StepError> {
    chdir(at).step(|| format!("cannot mount the root file system on {}", at.display()))
}

/// Attaches the root file system on the working directory, makes it the root, and detaches the
/// host's mounts.
pub(crate) fn enter(root: &OwnedFd) -> Result<(), StepError> {
    attach(root, CWD).step(|| "cannot mount the root file system")?;
    fchdir(root).step(|| "cannot enter the root file system")?;
    // pivot_root(".", ".") stacks the old root on the new one, so that it can be detached without a
    // directory for it (pivot_root(2), NOTES).
    pivot_root(".", ".")
        .step(|| "cannot pivot_root (not possible on a host that runs from its initramfs)")?;
    unmount(".", UnmountFlags::DETACH).step(|| "cannot detach the host's file systems")?;
    chdir("/").step(|| "cannot change to the container's root")
}
