//! Attaches the container's mounts, from inside of its root.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::fs::{Mode, OFlags, PROC_SUPER_MAGIC, ResolveFlags, fstatfs};

use super::{cgroups, host::Source};
use crate::{
    dev,
    filesystem::{attach, copy},
    in_root::{Root, is_dir},
    plan::{From, MountPlan, Plan},
    standard::Terminal,
    step::{Failure, Step, reason},
    sys::mount_attr::{self, MountAttr},
};

/// Files of `/proc` that may be covered, since programs that tell a container its own share of the
/// machine do so.
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
    plan: &Plan<'_>,
    sources: Vec<Source>,
    root: &Root,
) -> Result<(), Failure> {
    for (mount, source) in plan.mounts.iter().zip(sources) {
        match source {
            Source::Mount(fd) => attach_one(mount, &fd, root)?,
            Source::Cgroups(folder, hierarchies) => {
                attach_one(mount, &folder, root)?;
                cgroups::fill(mount, &folder, &hierarchies)?;
            }
            Source::Later => {
                if let Some(dev) = &plan.dev {
                    attach_one(mount, dev, root)?;
                }
            }
        }
    }
    Ok(())
}

fn attach_one(plan: &MountPlan<'_>, fd: &OwnedFd, root: &Root) -> Result<(), Failure> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    let target = target(plan, fd, root)?;
    attach(fd, &target).map_err(failed)?;
    Ok(())
}

/// Where a mount goes, made if it is missing.
fn target(plan: &MountPlan<'_>, fd: &OwnedFd, root: &Root) -> Result<OwnedFd, Failure> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    let to = plan.mount.destination.as_path();
    let folder = is_dir(fd).map_err(failed)?;
    if matches!(plan.mount.kind.as_str(), "proc" | "sysfs") && plan.from == From::New {
        return ordinary_dir(plan, root, |to| {
            format!("filesystem {to:?} must be mounted on ordinary directory")
        });
    }
    if plan.options.no_symlinks {
        return ordinary_dir(plan, root, |_| {
            "a component of the destination is a symbolic link or no directory".to_owned()
        });
    }
    let target = if folder {
        root.make_dir(to, Mode::from_raw_mode(0o755))
    } else {
        root.make_file(to)
    };
    let target = target.map_err(failed)?;
    let is_folder = is_dir(&target).map_err(failed)?;
    if folder != is_folder {
        let (one, other) = if folder {
            ("folder", "file")
        } else {
            ("file", "folder")
        };
        return Err(plan.failure(&format!(
            "not a directory: are you trying to mount a directory onto a file (or vice-versa)? the source is a {one}, the destination a {other}"
        )));
    }
    let inside_proc = fstatfs(&target)
        .map_err(|error| failed(error.into()))?
        .f_type
        == PROC_SUPER_MAGIC;
    if inside_proc && !COVERABLE.iter().any(|path| to == Path::new(path)) {
        return Err(plan.failure("it cannot be mounted because it is inside /proc"));
    }
    Ok(target)
}

/// A directory that nobody redirects: for `/proc` and `/sys`, since what is written there later would
/// land elsewhere, and for mounts at paths that a stranger chose. `refusal` says why one with a
/// symbolic link is refused, given the type of the file system.
fn ordinary_dir(
    plan: &MountPlan<'_>,
    root: &Root,
    refusal: impl FnOnce(&str) -> String,
) -> Result<OwnedFd, Failure> {
    let to = plan.mount.destination.as_path();
    let opened = root.make_ordinary_dir(to, Mode::from_raw_mode(0o755));
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENOTDIR) => plan.failure(&refusal(&plan.mount.kind)),
        _ => plan.failure(&reason(&error)),
    })
}

/// Devices that are not in the container's own `/dev`.
pub(crate) fn make_devices(plan: &Plan<'_>, root: &Root) -> Result<(), Failure> {
    // The umask of the program is set later, when it gets its user.
    rustix::process::umask(Mode::empty());
    for device in &plan.devices {
        let what = || format!("cannot make the device {}", device.path.display());
        let above = device.path.parent().unwrap_or(Path::new("/"));
        let dir = root
            .make_dir(above, Mode::from_raw_mode(0o755))
            .step(what)?;
        let name = Path::new(device.path.file_name().unwrap_or_default());
        match dev::make_node(&dir, name, device) {
            Ok(()) => {}
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

/// Shows the container's terminal as `/dev/console`. Where the container brought a `/dev` of its own,
/// a link there would lead the mount to any place of its file system, `/proc` among them.
pub(crate) fn attach_console(terminal: &Terminal, root: &Root) -> Result<(), Failure> {
    let what = || "cannot show the terminal as /dev/console";
    let mount = copy(terminal.slave.as_fd(), false).step(what)?;
    let target = root
        .make_ordinary_file(Path::new("/dev/console"))
        .step(what)?;
    attach(&mount, &target).step(what)
}

/// Propagation of the root, and whether it can be written.
pub(crate) fn finish_root(plan: &Plan<'_>, root: &Root) -> Result<(), Failure> {
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
            return Err(Failure(format!(
                "unknown propagation of the root: {other:?}"
            )));
        }
    };
    if let Some(propagation) = propagation {
        let attr = MountAttr::propagation(propagation);
        mount_attr::change(&here, &attr, false)
            .step(|| "cannot set the propagation of the container's root")?;
    }
    if plan.spec.root.readonly {
        mount_attr::change(&here, &MountAttr::read_only(), false)
            .step(|| "cannot make the container's root read-only")?;
    }
    Ok(())
}
