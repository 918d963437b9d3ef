//! Overlay mounts on the host, for external runtimes, which need a mounted root file system.

use std::{
    io,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use rubelet_host::mount;
use rustix::{
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create,
        fsconfig_set_string, fsmount, fsopen, move_mount,
    },
};

use crate::{protocol::Rootfs, spawn::open_dir};

/// Mounts the layers on a directory, which is created if it is missing.
pub(super) fn mount(rootfs: &Rootfs, at: &Path) -> io::Result<()> {
    let Rootfs::Overlay { lower, upper, work } = rootfs else {
        return Ok(());
    };
    std::fs::create_dir_all(at)?;
    let (upper, work) = (upper.as_deref(), work.as_deref());
    match mount_by_layer(lower, upper, work, at) {
        // Linux before 6.5 does not support `lowerdir+`. It fails at the option or, because
        // overlayfs parsed options later then, when the file system is created.
        Err(Errno::INVAL) => mount_as_text(lower, upper, work, at),
        mounted => Ok(mounted?),
    }
}

/// Passes each layer as an option of its own (`lowerdir+`).
fn mount_by_layer(
    lower: &[PathBuf],
    upper: Option<&Path>,
    work: Option<&Path>,
    at: &Path,
) -> rustix::io::Result<()> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let layers = lower.iter().map(|layer| ("lowerdir+", layer.as_path()));
    let upper = upper.map(|upper| ("upperdir", upper));
    let work = work.map(|work| ("workdir", work));
    for (key, path) in layers.chain(upper).chain(work) {
        fsconfig_set_string(&context, key, path)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::empty();
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    let whole = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&mount, "", rustix::fs::CWD, at, whole)
}

/// Before Linux 6.5 all layers are one option of at most a page. `/proc/self/fd/N` of open
/// directories are short, and have no colons or commas, which separate layers and options.
fn mount_as_text(
    lower: &[PathBuf],
    upper: Option<&Path>,
    work: Option<&Path>,
    at: &Path,
) -> io::Result<()> {
    let mut open = Vec::new();
    let mut name = |path: &Path| -> io::Result<String> {
        let directory = open_dir(path)?;
        let name = format!("/proc/self/fd/{}", directory.as_raw_fd());
        open.push(directory);
        Ok(name)
    };
    let layers: Vec<String> = lower
        .iter()
        .map(|layer| name(layer))
        .collect::<io::Result<_>>()?;
    let mut options = format!("lowerdir={}", layers.join(":"));
    for (option, path) in [("upperdir", upper), ("workdir", work)] {
        if let Some(path) = path {
            options.push_str(&format!(",{option}={}", name(path)?));
        }
    }
    let options = std::ffi::CString::new(options)?;
    rustix::mount::mount(
        "overlay",
        at,
        "overlay",
        rustix::mount::MountFlags::empty(),
        Some(options.as_c_str()),
    )?;
    Ok(())
}

/// Unmounts lazily, even if the mount is in use.
pub(super) fn unmount(rootfs: &Rootfs, at: &Path) -> io::Result<()> {
    if matches!(rootfs, Rootfs::Overlay { .. }) {
        mount::unmount(at, true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_mounted_on_older_kernels_too() {
        let dir = tempfile::tempdir().unwrap();
        let directory = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (at, upper, work) = (directory("at"), directory("upper"), directory("work"));
        let lower: Vec<PathBuf> = (0..40)
            .map(|number| {
                let layer = directory(&format!("{}:,\\-{number}", "long".repeat(40)));
                std::fs::write(layer.join("name"), number.to_string()).unwrap();
                std::fs::write(layer.join(number.to_string()), "").unwrap();
                layer
            })
            .collect();
        mount_as_text(&lower, Some(&upper), Some(&work), &at).unwrap();
        let name = std::fs::read_to_string(at.join("name")).unwrap();
        let count = std::fs::read_dir(&at).unwrap().count();
        std::fs::write(at.join("new"), "").unwrap();
        mount::unmount(&at, true).unwrap();
        assert_eq!((name.as_str(), count), ("0", 41), "the topmost layer wins");
        assert!(upper.join("new").exists());
    }
}
