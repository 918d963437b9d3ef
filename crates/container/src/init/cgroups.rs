//! `/sys/fs/cgroup` of a container on a host with cgroup version 1: the container's own cgroup of
//! each hierarchy, in a directory each.

use std::{
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rubelet_host::mountinfo::{self, MountEntry};
use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat},
    io::Errno,
    mount::{OpenTreeFlags, open_tree},
};

use crate::{
    filesystem::{Filesystem, attach},
    plan::MountPlan,
    step::{Step, StepError, reason},
    sys::mount_attr::{self, MountAttr},
};

/// The container's cgroup in one hierarchy.
#[derive(Debug)]
pub(crate) struct CgroupHierarchy {
    /// Name of its directory.
    pub(crate) name: String,
    /// The cgroup, as a detached mount.
    pub(crate) mount: OwnedFd,
    /// Names of the controllers if one hierarchy has several.
    pub(crate) links: Vec<String>,
}

/// The hierarchies, from the cgroup of this process downwards; `None` if the host has version 2.
pub(crate) fn gather() -> Result<Option<Vec<CgroupHierarchy>>, StepError> {
    let what = "cannot list the cgroup hierarchies";
    let mounts = mountinfo::read().map_err(|error| StepError(format!("{what}: {error}")))?;
    let top = mountinfo::containing(&mounts, Path::new("/sys/fs/cgroup"));
    if top.is_some_and(|top| top.fs_type == "cgroup2") {
        return Ok(None);
    }
    let own = std::fs::read_to_string("/proc/thread-self/cgroup").step(|| what)?;
    let mut hierarchies = Vec::new();
    let below = mountinfo::at_or_below(&mounts, Path::new("/sys/fs/cgroup"));
    for entry in below {
        if let Some(path) = own_path(entry, &own) {
            hierarchies.push(open(entry, &path)?);
        }
    }
    Ok(Some(hierarchies))
}

/// Path of this process's cgroup in a mounted hierarchy, if the mount shows it.
fn own_path(entry: &MountEntry, own: &str) -> Option<PathBuf> {
    let lines = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?))
    });
    let mut found = lines.filter(|(controllers, _)| match entry.fs_type.as_str() {
        "cgroup" => {
            let has = |option: &str| entry.super_options.split(',').any(|one| one == option);
            !controllers.is_empty() && controllers.split(',').all(has)
        }
        "cgroup2" => controllers.is_empty(),
        _ => false,
    });
    let (_, path) = found.next()?;
    let path = Path::new(path).strip_prefix(&entry.root).ok()?;
    Some(entry.mount_point.join(path))
}

fn open(entry: &MountEntry, path: &Path) -> Result<CgroupHierarchy, StepError> {
    let what = || format!("cannot open the cgroup {}", path.display());
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, path, flags).step(what)?;
    let attr = MountAttr::propagation(libc::MS_PRIVATE);
    mount_attr::change(&mount, &attr, false).step(what)?;
    let name = entry.mount_point.file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let links = name.split(',').filter(|one| **one != name);
    let links = links.map(ToOwned::to_owned).collect();
    Ok(CgroupHierarchy { name, mount, links })
}

/// The tmpfs with a directory for each hierarchy, as a detached mount. The host's root creates it,
/// because processes of a user namespace could not.
pub(crate) fn directory(
    plan: &MountPlan<'_>,
    hierarchies: &[CgroupHierarchy],
) -> Result<OwnedFd, StepError> {
    let failed = |error: Errno| plan.failure(&reason(&error.into()));
    let fs = Filesystem::open("tmpfs")?;
    let _ = fs.set("source", "tmpfs");
    fs.option("mode=755")?;
    // Made read-only, if requested, after it is filled.
    let attr = plan.options.attr.set & !libc::MOUNT_ATTR_RDONLY;
    let directory = fs.mount(attr).map_err(|failure| plan.failure(&failure.0))?;
    for hierarchy in hierarchies {
        let name = hierarchy.name.as_str();
        mkdirat(&directory, name, Mode::from_raw_mode(0o755)).map_err(failed)?;
        for link in &hierarchy.links {
            symlinkat(name, &directory, link.as_str()).map_err(failed)?;
        }
    }
    Ok(directory)
}

/// Mounts the hierarchies in the directory, which is attached now.
pub(crate) fn fill(
    plan: &MountPlan<'_>,
    directory: &OwnedFd,
    hierarchies: &[CgroupHierarchy],
) -> Result<(), StepError> {
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    for hierarchy in hierarchies {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let target = openat(directory, hierarchy.name.as_str(), flags, Mode::empty())
            .map_err(|error| failed(error.into()))?;
        mount_attr::change(&hierarchy.mount, &plan.options.attr, false).map_err(failed)?;
        attach(&hierarchy.mount, &target).map_err(failed)?;
    }
    if plan.options.attr.set & libc::MOUNT_ATTR_RDONLY != 0 {
        mount_attr::change(directory, &MountAttr::read_only(), false).map_err(failed)?;
    }
    Ok(())
}
