//! The steps before pivot_root, while the host's files are accessible.

use std::os::fd::{AsFd, OwnedFd};

use rubelet_host::mountinfo;
use rubelet_oci::{IdMapping, NamespaceKind};
use rustix::{
    fs::CWD,
    mount::{OpenTreeFlags, open_tree},
    thread::{UnshareFlags, move_into_link_name_space},
};

use super::{Init, StdioSetup, cgroups, layers, root};
use crate::{
    IdMappings, RootfsSource,
    filesystem::Filesystem,
    namespaces::user_namespace,
    overlay::mount_overlay,
    plan::{ContainerPlan, MountPlan, MountSource},
    proc::set_parameter,
    step::{Step, StepError, reason},
    sys::{
        clone::unshare,
        loopback,
        mount_attr::{self, MountAttr},
        process::set_domain_name,
    },
};

/// Everything that comes from the host, as open descriptors.
#[derive(Debug)]
pub(crate) struct HostHandles {
    /// The root file system, a detached mount.
    pub(crate) root: Option<OwnedFd>,
    /// The source of each mount of the plan.
    pub(crate) mounts: Vec<HostMount>,
    /// A mount of `/dev/null`, to mask files.
    pub(crate) null: Option<OwnedFd>,
}

/// The source of a mount.
#[derive(Debug)]
pub(crate) enum HostMount {
    /// Created later.
    Later,
    /// A detached mount.
    Mount(OwnedFd),
    /// A directory of cgroups, hierarchy by hierarchy.
    Cgroups(OwnedFd, Vec<cgroups::CgroupHierarchy>),
}

impl HostHandles {
    /// Joins the shared namespaces and opens what the container gets from the host.
    pub(crate) fn gather(init: &Init<'_>) -> Result<Self, StepError> {
        let plan = &init.plan;
        init.process_setup.prepare(&init.reporter)?;
        if let StdioSetup::Files(files) = &init.stdio {
            files.give_to(plan.ids.uid(init.process_setup.uid()));
        }
        join(plan)?;
        root::go_to(plan.mount_at)?;
        let mut mounts = Vec::with_capacity(plan.mounts.len());
        for mount in &plan.mounts {
            mounts.push(match mount.source {
                MountSource::Bind => HostMount::Mount(bind(mount, plan)?),
                MountSource::Cgroup => match cgroups::gather()? {
                    // cgroup2 is mounted later, from within the container's cgroup namespace.
                    None => HostMount::Later,
                    Some(hierarchies) => {
                        let directory = cgroups::directory(mount, &hierarchies)?;
                        HostMount::Cgroups(directory, hierarchies)
                    }
                },
                MountSource::Dev | MountSource::New | MountSource::Layers => HostMount::Later,
            });
        }
        let null = if plan.spec.linux.masked_paths.is_empty() {
            None
        } else {
            Some(null()?)
        };
        Ok(Self {
            root: None,
            mounts,
            null,
        })
    }

    /// Mounts the root file system and image volumes. Must run in its own mount namespace.
    pub(crate) fn mount_images(&mut self, plan: &ContainerPlan<'_>) -> Result<(), StepError> {
        let userns = plan.user.as_ref().map(AsFd::as_fd);
        let label = plan.spec.linux.mount_label.as_str();
        self.root = Some(match plan.rootfs {
            RootfsSource::Overlay(overlay) => {
                mount_overlay(overlay, label, userns, &plan.ids, plan.mount_at)?
            }
            RootfsSource::Directory(directory) => {
                let what = || format!("cannot open the root file system {}", directory.display());
                let flags = OpenTreeFlags::OPEN_TREE_CLONE
                    | OpenTreeFlags::OPEN_TREE_CLOEXEC
                    | OpenTreeFlags::AT_RECURSIVE;
                open_tree(CWD, directory, flags).step(what)?
            }
        });
        for (source, mount) in self.mounts.iter_mut().zip(&plan.mounts) {
            if mount.source == MountSource::Layers {
                *source = HostMount::Mount(layers::mount(mount, plan)?);
            }
        }
        Ok(())
    }

    /// Creates the file systems of the container's namespaces. Must run before pivot_root: in a
    /// user namespace the kernel allows mounting proc and sysfs only while fully visible ones are
    /// in the mount namespace (mount_too_revealing).
    pub(crate) fn mount_filesystems(&mut self, plan: &ContainerPlan<'_>) -> Result<(), StepError> {
        for (source, mount) in self.mounts.iter_mut().zip(&plan.mounts) {
            let new_one = matches!(mount.source, MountSource::New | MountSource::Cgroup);
            if matches!(source, HostMount::Later) && new_one {
                *source = HostMount::Mount(new(mount, &plan.spec.linux.mount_label)?);
            }
        }
        Ok(())
    }
}

fn join(plan: &ContainerPlan<'_>) -> Result<(), StepError> {
    for (kind, namespace) in &plan.joins {
        move_into_link_name_space(namespace.as_fd(), Some(*kind))
            .step(|| format!("cannot join the pod's namespace ({kind:?})"))?;
    }
    if !plan.shared.is_empty() {
        unshare(plan.shared).step(|| "cannot create namespaces")?;
    }
    if plan.shared.contains(UnshareFlags::NEWNET) {
        loopback::up().step(|| "cannot bring up the loopback interface")?;
    }
    if plan.shared.contains(UnshareFlags::NEWUTS) {
        let name = &plan.spec.hostname;
        if !name.is_empty() {
            rustix::system::sethostname(name.as_bytes())
                .step(|| format!("cannot set the host name {name:?}"))?;
        }
        let name = &plan.spec.domainname;
        if !name.is_empty() {
            set_domain_name(name).step(|| format!("cannot set the domain name {name:?}"))?;
        }
    }
    let own_network = plan.spec.linux.namespace(NamespaceKind::Network).is_some();
    for (name, value) in &plan.spec.linux.sysctl {
        // It would change the host.
        if (name.starts_with("net.") || name.starts_with("net/")) && !own_network {
            return Err(StepError(format!(
                "the kernel parameter {name} cannot be set in the host's network"
            )));
        }
        set_parameter(name, value)?;
    }
    Ok(())
}

/// A bind mount, with its flags, its propagation and its IDs.
fn bind(plan: &MountPlan<'_>, whole: &ContainerPlan<'_>) -> Result<OwnedFd, StepError> {
    let options = &plan.options;
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    if options.rbind {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let failed = |error: std::io::Error| plan.failure(&reason(&error));
    let mount = open_tree(CWD, &plan.mount.source, flags).map_err(|error| failed(error.into()))?;
    if let Some(recursive) = options.idmap {
        map_ids(&mount, plan, whole, recursive)?;
    }
    mount_attr::change(&mount, &options.attr, false).map_err(failed)?;
    mount_attr::change(&mount, &options.recursive_attr, true).map_err(failed)?;
    // A copy of a shared mount remains in its peer group unless its propagation is changed.
    let (propagation, recursive) = options.propagation.unwrap_or((libc::MS_PRIVATE, true));
    if propagation == libc::MS_SHARED || propagation == libc::MS_SLAVE {
        check_propagates(plan, propagation == libc::MS_SHARED)?;
    }
    if propagation != libc::MS_SHARED {
        let attr = MountAttr::propagation(propagation);
        mount_attr::change(&mount, &attr, recursive).map_err(failed)?;
    }
    Ok(mount)
}

/// Refuses a propagating mount whose source is not on a shared (or slave) mount of the host: it
/// would silently not propagate.
fn check_propagates(plan: &MountPlan<'_>, shared: bool) -> Result<(), StepError> {
    let source = &plan.mount.source;
    let real = source.canonicalize();
    let real = real.map_err(|error| plan.failure(&reason(&error)))?;
    let mounts = mountinfo::read().map_err(|error| plan.failure(&error.to_string()))?;
    let Some(on) = mountinfo::containing(&mounts, &real) else {
        return Err(plan.failure("its source is not on a mount"));
    };
    let is_slave = on.propagation.iter().any(|one| one.starts_with("master:"));
    if on.is_shared() || (is_slave && !shared) {
        return Ok(());
    }
    let (source, on) = (source.display(), on.mount_point.display());
    let kind = if shared { "shared" } else { "shared or slave" };
    Err(plan.failure(&format!(
        "path {source} is mounted on {on} but it is not a {kind} mount"
    )))
}

fn map_ids(
    mount: &OwnedFd,
    plan: &MountPlan<'_>,
    whole: &ContainerPlan<'_>,
    recursive: bool,
) -> Result<(), StepError> {
    let (uids, gids) = (&plan.mount.uid_mappings, &plan.mount.gid_mappings);
    let linux = &whole.spec.linux;
    let same = |own: &[IdMapping], pods: &[IdMapping]| own.is_empty() || own == pods;
    let made;
    let userns = match &whole.user {
        Some(user) if same(uids, &linux.uid_mappings) && same(gids, &linux.gid_mappings) => {
            user.as_fd()
        }
        _ if uids.is_empty() || gids.is_empty() => {
            return Err(plan.failure(
                "an ID-mapped mount without a user namespace needs uidMappings and gidMappings",
            ));
        }
        _ => {
            let mappings = IdMappings {
                uids: uids.clone(),
                gids: gids.clone(),
            };
            // No process has to remain in it: the mount keeps its mappings.
            made = user_namespace(&mappings).map_err(|error| plan.failure(&error.to_string()))?;
            made.as_fd()
        }
    };
    mount_attr::change(mount, &MountAttr::idmap(userns), recursive).map_err(|error| {
        let reason = reason(&error);
        plan.failure(&format!(
            "the file system of the source does not support ID-mapped mounts, which pods with a user namespace need: {reason}"
        ))
    })
}

/// A new file system of the container, with an SELinux label if there is one.
fn new(plan: &MountPlan<'_>, label: &str) -> Result<OwnedFd, StepError> {
    let failed = |failure: StepError| plan.failure(&failure.0);
    let mount = plan.mount;
    let kind = match mount.kind.as_str() {
        "cgroup" => "cgroup2",
        kind => kind,
    };
    let fs = Filesystem::open(kind).map_err(failed)?;
    if let Some(source) = mount.source.to_str().filter(|source| !source.is_empty()) {
        // Some file systems refuse a source; it is only for display.
        let _ = fs.set("source", source);
    }
    for option in &plan.options.data {
        fs.option(option).map_err(failed)?;
    }
    // proc, sysfs and cgroup2 have their own labels.
    if !label.is_empty() && matches!(kind, "tmpfs" | "devpts" | "mqueue") {
        fs.option(&format!("context={label}")).map_err(failed)?;
    }
    let made = fs.mount(plan.options.attr.set).map_err(failed)?;
    if let Some((propagation, recursive)) = plan.options.propagation {
        let attr = MountAttr::propagation(propagation);
        mount_attr::change(&made, &attr, recursive)
            .map_err(|error| plan.failure(&reason(&error)))?;
    }
    Ok(made)
}

/// A mount of the host's `/dev/null`, checked to be device 1:3.
fn null() -> Result<OwnedFd, StepError> {
    let what = || "cannot open the host's /dev/null";
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, "/dev/null", flags).step(what)?;
    let stat = rustix::fs::fstat(&mount).step(what)?;
    if stat.st_rdev != rustix::fs::makedev(1, 3) {
        return Err(StepError::new(
            "the host's /dev/null is not the null device",
        ));
    }
    let attr = MountAttr::propagation(libc::MS_PRIVATE);
    mount_attr::change(&mount, &attr, false).step(what)?;
    Ok(mount)
}
