//! The overlay file system of a container's root.

use std::{
    ffi::CString,
    fmt::Write,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, chownat, open, unlinkat},
    io::Errno,
    mount::{MountFlags, OpenTreeFlags, mount, open_tree},
};

use crate::{
    Overlay,
    filesystem::{Filesystem, attach},
    ids::HostIds,
    step::{Step, StepError, reason},
    sys::mount_attr::{self, MountAttr},
};

/// The kernel's limit for the value of an option.
const LONGEST_VALUE: usize = 255;

/// Creates a detached overlay mount; its files have the SELinux label `label`, if any. With
/// `userns`, the lower layers are ID-mapped to that user namespace, and its root owns the upper
/// directory.
///
/// The calling process must have a private mount namespace, and `at` as its working directory:
/// layers are mounted on it temporarily, and remain there until the namespace ends.
pub(crate) fn mount_overlay(
    overlay: &Overlay,
    label: &str,
    userns: Option<BorrowedFd<'_>>,
    ids: &HostIds<'_>,
    at: &Path,
) -> Result<OwnedFd, StepError> {
    if overlay.lower.is_empty() {
        return Err(StepError::new("the root file system has no layers"));
    }
    let layers = LowerLayers::open(overlay, userns)?;
    if let Some(upper) = &overlay.upper {
        if userns.is_some() {
            let (uid, gid) = (ids.uid(0), ids.gid(0));
            chownat(CWD, upper, uid, gid, AtFlags::empty()).step(|| {
                format!(
                    "cannot change the owner of {} to the container's root",
                    upper.display()
                )
            })?;
        }
        if let Some(work) = &overlay.work {
            // With `volatile`, the kernel refuses directories of an earlier mount that was not
            // synced. Removing its marker is safe: they are used by one container only.
            let dirty = work.join("work/incompat/volatile/dirty");
            let _ = unlinkat(CWD, dirty, AtFlags::empty());
            let _ = unlinkat(CWD, work.join("work/incompat/volatile"), AtFlags::REMOVEDIR);
            let _ = unlinkat(CWD, work.join("work/incompat"), AtFlags::REMOVEDIR);
        }
    }
    match mount_by_layer(overlay, label, &layers)? {
        Ok(mount) => Ok(mount),
        // Report the error that has a message of the kernel.
        Err(first) => mount_by_list(overlay, label, &layers, at).map_err(|second| {
            if first.0.contains("; ") {
                first
            } else {
                second
            }
        }),
    }
}

/// Creates a detached read-only mount of a single layer; same conditions as [`mount_overlay`].
pub(crate) fn mount_single(
    layer: &Path,
    userns: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, StepError> {
    let what = || format!("cannot open the layer {}", layer.display());
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, layer, flags).step(what)?;
    if let Some(userns) = userns {
        map(&mount, layer, userns)?;
    }
    mount_attr::change(&mount, &MountAttr::read_only(), false).step(what)?;
    let private = MountAttr::propagation(libc::MS_PRIVATE);
    mount_attr::change(&mount, &private, false).step(what)?;
    Ok(mount)
}

/// The lower layers, by short paths without special characters.
struct LowerLayers {
    paths: Vec<String>,
    _open: Vec<OwnedFd>,
}

impl LowerLayers {
    fn open(overlay: &Overlay, userns: Option<BorrowedFd<'_>>) -> Result<Self, StepError> {
        let mut paths = Vec::with_capacity(overlay.lower.len());
        let mut kept = Vec::new();
        for lower in &overlay.lower {
            let plain = lower.to_str().filter(|path| is_plain(path));
            match (plain, userns) {
                (Some(path), None) => paths.push(path.to_owned()),
                _ => {
                    let fd = match userns {
                        Some(userns) => mapped(lower, userns)?,
                        None => open_dir(lower)?,
                    };
                    paths.push(format!("/proc/self/fd/{}", fd.as_raw_fd()));
                    kept.push(fd);
                }
            }
        }
        Ok(Self { paths, _open: kept })
    }
}

fn is_plain(path: &str) -> bool {
    path.len() <= LONGEST_VALUE && !path.contains([',', ':', '\\', '"'])
}

fn open_dir(path: &Path) -> Result<OwnedFd, StepError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).step(|| format!("cannot open the layer {}", path.display()))
}

/// An ID-mapped layer. It must be attached: kernels before 6.15 refuse detached mounts as layers.
fn mapped(lower: &Path, userns: BorrowedFd<'_>) -> Result<OwnedFd, StepError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let layer = open_tree(CWD, lower, flags)
        .step(|| format!("cannot open the layer {}", lower.display()))?;
    map(&layer, lower, userns)?;
    attach(&layer, CWD).step(|| format!("cannot mount the layer {}", lower.display()))?;
    Ok(layer)
}

fn map(layer: &OwnedFd, path: &Path, userns: BorrowedFd<'_>) -> Result<(), StepError> {
    mount_attr::change(layer, &MountAttr::idmap(userns), false).step(|| {
        format!(
            "the file system of {} does not support ID-mapped mounts, which pods with a user namespace need",
            path.display()
        )
    })
}

/// One option per layer (`lowerdir+`). The inner failure may mean that this kernel is older than
/// 6.5, which only supports a list.
fn mount_by_layer(
    overlay: &Overlay,
    label: &str,
    layers: &LowerLayers,
) -> Result<Result<OwnedFd, StepError>, StepError> {
    let fs = Filesystem::open("overlay")?;
    // The source that `df` shows.
    let _ = fs.set("source", "overlay");
    for (number, layer) in layers.paths.iter().enumerate() {
        match fs.set("lowerdir+", layer) {
            Ok(()) => {}
            Err(error) if number == 0 && error.raw_os_error() == Some(libc::EINVAL) => {
                return Ok(Err(fs.failed(&error, "lowerdir+")));
            }
            Err(error) => {
                let lower = overlay.lower[number].display();
                return Err(fs.failed(&error, &format!("layer {lower}")));
            }
        }
    }
    let mut attr = 0;
    let mut open = Vec::new();
    match (&overlay.upper, &overlay.work) {
        (Some(upper), Some(work)) => {
            for (key, path) in [("upperdir", upper), ("workdir", work)] {
                let value = match path.to_str() {
                    Some(text) if text.len() <= LONGEST_VALUE => text.to_owned(),
                    _ => {
                        let fd = open_dir(path)?;
                        let text = format!("/proc/self/fd/{}", fd.as_raw_fd());
                        open.push(fd);
                        text
                    }
                };
                fs.set(key, &value)
                    .map_err(|error| fs.failed(&error, &format!("{key} {}", path.display())))?;
            }
            // `volatile` skips syncs: a container's changes are discarded after a crash of the
            // machine anyway.
            fs.option("volatile")?;
        }
        (None, None) => attr = libc::MOUNT_ATTR_RDONLY,
        _ => {
            return Err(StepError::new(
                "an overlay needs both an upper and a work directory",
            ));
        }
    }
    if !label.is_empty() {
        fs.option(&format!("context={label}"))?;
    }
    // Set because the defaults depend on the kernel's configuration. `nofollow`: redirects in the
    // layers of an image are not followed.
    fs.option("redirect_dir=nofollow")?;
    fs.option("index=off")?;
    match fs.try_mount(attr) {
        Ok(mount) => Ok(Ok(mount)),
        // Before Linux 6.5 the kernel parses the options only here.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Ok(Err(fs.failed(&error, "mount")))
        }
        Err(error) => Err(fs.failed(&error, "mount")),
    }
}

/// All layers in one option of mount(2).
fn mount_by_list(
    overlay: &Overlay,
    label: &str,
    layers: &LowerLayers,
    at: &Path,
) -> Result<OwnedFd, StepError> {
    let mut kept = Vec::new();
    let mut short = |path: &str| -> Result<String, StepError> {
        let fd = open_dir(Path::new(path))?;
        let text = format!("/proc/self/fd/{}", fd.as_raw_fd());
        kept.push(fd);
        Ok(text)
    };
    let whole: usize = layers.paths.iter().map(|path| path.len() + 1).sum();
    // All options together must fit into a page (4 KiB).
    let long = whole > 3000;
    let mut data = String::from("lowerdir=");
    for (number, layer) in layers.paths.iter().enumerate() {
        if number > 0 {
            data.push(':');
        }
        if long && !layer.starts_with("/proc/self/fd/") {
            data.push_str(&short(layer)?);
        } else {
            data.push_str(layer);
        }
    }
    let mut flags = MountFlags::empty();
    match (&overlay.upper, &overlay.work) {
        (Some(upper), Some(work)) => {
            for (key, path) in [("upperdir", upper), ("workdir", work)] {
                let fd = open_dir(path)?;
                let _ = write!(data, ",{key}=/proc/self/fd/{}", fd.as_raw_fd());
                kept.push(fd);
            }
            data.push_str(",volatile");
        }
        (None, None) => flags = MountFlags::RDONLY,
        _ => {
            return Err(StepError::new(
                "an overlay needs both an upper and a work directory",
            ));
        }
    }
    if !label.is_empty() {
        let _ = write!(data, ",context=\"{label}\"");
    }
    data.push_str(",redirect_dir=nofollow,index=off");
    let data = CString::new(data).map_err(|_| StepError::new("a layer's path has a zero byte"))?;
    mount("overlay", at, "overlay", flags, data.as_c_str()).map_err(|error| {
        let hint = match error {
            Errno::INVAL => " (see the kernel log)",
            _ => "",
        };
        let reason = reason(&error.into());
        StepError(format!("cannot mount the overlay: {reason}{hint}"))
    })?;
    // mount(2) attaches. The caller gets a detached copy, and the attached mount remains until the
    // namespace ends.
    let copy = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let path = at.as_os_str().as_bytes();
    open_tree(CWD.as_fd(), path, copy).step(|| "cannot copy the overlay's mount")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::enter_mount_namespace;
    use rustix::thread::UnshareFlags;
    use std::fs;

    /// The kernels that need it are older than the one of this machine.
    #[test]
    fn layers_can_be_told_as_a_list() {
        let dir = tempfile::Builder::new()
            .prefix("rbt-container-")
            .tempdir()
            .unwrap();
        let path = dir.path().to_owned();
        let mut overlay = Overlay {
            upper: Some(path.join("upper")),
            work: Some(path.join("work,1")),
            ..Overlay::default()
        };
        for number in 0..100 {
            let layer = path.join(format!("{number}:{}", "long".repeat(30)));
            fs::create_dir(&layer).unwrap();
            fs::write(layer.join("topmost"), number.to_string()).unwrap();
            overlay.lower.push(layer);
        }
        for directory in ["upper", "work,1", "at"] {
            fs::create_dir(path.join(directory)).unwrap();
        }
        // The mounts are seen by this thread only, and end with it.
        let mounted = std::thread::spawn(move || {
            enter_mount_namespace(UnshareFlags::NEWNS | UnshareFlags::FS).unwrap();
            let at = path.join("at");
            let layers = LowerLayers::open(&overlay, None).unwrap();
            mount_by_list(&overlay, "", &layers, &at).unwrap();
            fs::write(at.join("new"), "").unwrap();
            fs::read_to_string(at.join("topmost")).unwrap()
        });
        assert_eq!(mounted.join().unwrap(), "0");
        assert!(dir.path().join("upper/new").exists());
        assert!(!dir.path().join("at/new").exists());
    }
}
