//! Attaches the container's mounts, after pivot_root.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs};

use super::{cgroups, host::HostMount};
use crate::{
    dev,
    filesystem::{attach, copy},
    in_root::{RootDir, is_dir},
    plan::{ContainerPlan, MountPlan, MountSource},
    stdio::Terminal,
    step::{Step, StepError, reason},
    sys::mount_attr::{self, MountAttr},
};

/// Files of `/proc` that may be mounted over, as LXCFS does. The list is runc's.
const COVERABLE: [&str; 9] = [
    "/proc/cpuinfo",
    "/proc/diskstats",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/slabinfo",
    "/proc/stat",
    "/proc/swaps",
    "/proc/uptime",
    "/proc/sys/kernel/ns_last_pid",
];

/// Attaches all mounts, in their order.
pub(crate) fn attach_all(
    plan: &ContainerPlan<'_>,
    sources: Vec<HostMount>,
    root: &RootDir,
) -> Result<(), StepError> {
    // In the order of the specification: a mount may lie inside of an earlier one.
    for (mount, source) in plan.mounts.iter().zip(sources) {
        match source {
            HostMount::Mount(fd) => attach_one(mount, &fd, root)?,
            HostMount::Cgroups(directory, hierarchies) => {
                attach_one(mount, &directory, root)?;
                cgroups::fill(mount, &directory, &hierarchies)?;
            }
            HostMount::Later => {
                if let Some(dev) = &plan.dev {
                    attach_one(mount, dev, root)?;
                }
            }
        }
    }
    Ok(())
}

fn attach_one(plan: &MountPlan<'_>, fd: &OwnedFd, root: &RootDir) -> Result<(), StepError> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    let target = target(plan, fd, root)?;
    attach(fd, &target).map_err(failed)?;
    Ok(())
}

/// The mount point, created if it is missing.
fn target(plan: &MountPlan<'_>, fd: &OwnedFd, root: &RootDir) -> Result<OwnedFd, StepError> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    let to = plan.mount.destination.as_path();
    let directory = is_dir(fd).map_err(failed)?;
    if matches!(plan.mount.kind.as_str(), "proc" | "sysfs") && plan.source == MountSource::New {
        return ordinary_dir(plan, root, |to| {
            format!("filesystem {to:?} must be mounted on ordinary directory")
        });
    }
    if plan.options.no_symlinks {
        return ordinary_dir(plan, root, |_| {
            "a component of the destination is a symbolic link or not a directory".to_owned()
        });
    }
    let target = if directory {
        root.make_dir(to, Mode::from_raw_mode(0o755))
    } else {
        root.make_file(to)
    };
    let target = target.map_err(failed)?;
    let is_directory = is_dir(&target).map_err(failed)?;
    if directory != is_directory {
        let (one, other) = if directory {
            ("directory", "file")
        } else {
            ("file", "directory")
        };
        return Err(plan.failure(&format!(
            "not a directory: are you trying to mount a directory onto a file (or vice-versa)? the source is a {one}, the destination a {other}"
        )));
    }
    // Checked on the open mount point, not by its path: a symbolic link of the image may lead into
    // `/proc` (CVE-2019-16884).
    let inside_proc = fstatfs(&target)
        .map_err(|error| failed(error.into()))?
        .f_type
        == PROC_SUPER_MAGIC;
    if inside_proc && !COVERABLE.iter().any(|path| to == Path::new(path)) {
        return Err(plan.failure("cannot be mounted because it is inside /proc"));
    }
    Ok(target)
}

/// Opens a mount point without symbolic links: for `/proc` and `/sys`, where later writes would
/// otherwise go elsewhere (CVE-2019-19921), and for mounts at paths of an untrusted image.
/// `refusal` gives the error for a symbolic link, from the type of the file system.
fn ordinary_dir(
    plan: &MountPlan<'_>,
    root: &RootDir,
    refusal: impl FnOnce(&str) -> String,
) -> Result<OwnedFd, StepError> {
    let to = plan.mount.destination.as_path();
    let opened = root.make_ordinary_dir(to, Mode::from_raw_mode(0o755));
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => plan.failure(&refusal(&plan.mount.kind)),
        _ => plan.failure(&reason(&error)),
    })
}

/// Devices that are not in the container's own `/dev`.
pub(crate) fn make_devices(plan: &ContainerPlan<'_>, root: &RootDir) -> Result<(), StepError> {
    // The umask of the process is set later, with its user.
    rustix::process::umask(Mode::empty());
    for device in &plan.devices {
        let what = || format!("cannot create the device {}", device.path.display());
        let above = device.path.parent().unwrap_or(Path::new("/"));
        let dir = root
            .make_dir(above, Mode::from_raw_mode(0o755))
            .step(what)?;
        let name = Path::new(device.path.file_name().unwrap_or_default());
        match dev::make_node(&dir, name, device) {
            Ok(()) => {}
            // An existing node of the image or of a mount is kept, with its owner.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            other => other.step(what)?,
        }
        let uid = device.uid.map(rustix::fs::Uid::from_raw);
        let gid = device.gid.map(rustix::fs::Gid::from_raw);
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::chownat(&dir, name, uid, gid, flags).step(what)?;
    }
    Ok(())
}

/// Mounts the container's terminal on `/dev/console`. Symbolic links are refused: in the
/// container's own `/dev`, one could redirect the mount, for instance into `/proc`
/// (CVE-2025-52565).
pub(crate) fn attach_console(terminal: &Terminal, root: &RootDir) -> Result<(), StepError> {
    let what = || "cannot mount the terminal on /dev/console";
    let mount = copy(terminal.slave.as_fd(), false).step(what)?;
    let target = root
        .make_ordinary_file(Path::new("/dev/console"))
        .step(what)?;
    attach(&mount, &target).step(what)
}

/// Sets the propagation of the root, and makes it read-only if requested.
pub(crate) fn finish_root(plan: &ContainerPlan<'_>, root: &RootDir) -> Result<(), StepError> {
    // Only now: mount points and devices were created in it.
    let here = root
        .open(
            Path::new("/"),
            OFlags::PATH | OFlags::DIRECTORY,
            ResolveFlags::empty(),
        )
        .step(|| "cannot open the container's root")?;
    let propagation = match plan.spec.linux.rootfs_propagation.trim_start_matches('r') {
        "" | "private" => None,
        "slave" => Some(libc::MS_SLAVE),
        "shared" => Some(libc::MS_SHARED),
        "unbindable" => Some(libc::MS_UNBINDABLE),
        other => {
            return Err(StepError(format!(
                "unknown propagation of the root: {other:?}"
            )));
        }
    };
    if let Some(propagation) = propagation {
        let attr = MountAttr::propagation(propagation);
        mount_attr::change(&here, &attr, false)
            .step(|| "cannot set the propagation of the container's root")?;
    }
    // Not recursive: volumes below it keep their own flags.
    if plan.spec.root.readonly {
        mount_attr::change(&here, &MountAttr::read_only(), false)
            .step(|| "cannot make the container's root read-only")?;
    }
    Ok(())
}
