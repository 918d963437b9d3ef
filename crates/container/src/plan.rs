//! A container's specification, parsed and checked before anything is started.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rubelet_oci::{Device, Mount, NamespaceKind, Spec};
use rustix::{
    fs::{CWD, Mode, OFlags, openat},
    thread::{LinkNameSpaceType, UnshareFlags},
};

use crate::{
    JoinedNamespaces, LaunchError, RootfsSource, dev, ids::HostIds, mount_options::MountOptions,
    step::StepError,
};

/// The work of the init, apart from becoming its process.
#[derive(Debug)]
pub(crate) struct ContainerPlan<'a> {
    /// The specification.
    pub(crate) spec: &'a Spec,
    /// Its root file system.
    pub(crate) rootfs: RootfsSource<'a>,
    /// The directory to mount the root on.
    pub(crate) mount_at: &'a Path,
    /// IDs of its user namespace.
    pub(crate) ids: HostIds<'a>,
    /// Its mounts, in order.
    pub(crate) mounts: Vec<MountPlan<'a>>,
    /// Its `/dev`, a detached mount.
    pub(crate) dev: Option<OwnedFd>,
    /// Devices outside of `/dev`.
    pub(crate) devices: Vec<&'a Device>,
    /// Namespaces to join: network, IPC, host name.
    pub(crate) joins: Vec<(LinkNameSpaceType, NamespaceFd<'a>)>,
    /// New namespaces of kinds that pods share.
    pub(crate) shared: UnshareFlags,
    /// New namespaces of kinds that are always the container's own.
    pub(crate) own: UnshareFlags,
    /// User namespace to join.
    pub(crate) user: Option<NamespaceFd<'a>>,
    /// Process ID namespace.
    pub(crate) pid: PidPlan<'a>,
}

/// One mount.
#[derive(Debug)]
pub(crate) struct MountPlan<'a> {
    /// Its entry in the specification.
    pub(crate) mount: &'a Mount,
    /// Its options.
    pub(crate) options: MountOptions<'a>,
    /// Its source.
    pub(crate) source: MountSource,
}

/// The source of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountSource {
    /// A file or directory of the host.
    Bind,
    /// The `/dev` that was created before.
    Dev,
    /// The cgroups of the container.
    Cgroup,
    /// Layers of an image.
    Layers,
    /// A file system of that type.
    New,
}

/// The process ID namespace.
#[derive(Debug)]
pub(crate) enum PidPlan<'a> {
    /// The one of the caller.
    Same,
    /// A new one, with the process as init.
    New,
    /// An existing one.
    Join(NamespaceFd<'a>),
}

/// An open namespace.
#[derive(Debug)]
pub(crate) enum NamespaceFd<'a> {
    /// A descriptor of the caller.
    Borrowed(BorrowedFd<'a>),
    /// A descriptor opened from a path.
    Owned(OwnedFd),
}

impl AsFd for NamespaceFd<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => *fd,
            Self::Owned(fd) => fd.as_fd(),
        }
    }
}

impl<'a> ContainerPlan<'a> {
    /// Parses a specification.
    pub(crate) fn read(
        spec: &'a Spec,
        rootfs: RootfsSource<'a>,
        mount_at: &'a Path,
        joined: JoinedNamespaces<'a>,
    ) -> Result<Self, LaunchError> {
        let linux = &spec.linux;
        if linux
            .namespace(NamespaceKind::Mount)
            .is_none_or(|one| one.path.is_some())
        {
            return refused("a container needs its own mount namespace");
        }
        if linux.namespace(NamespaceKind::Time).is_some() {
            return refused("time namespaces are not supported");
        }
        let mut plan = Self {
            spec,
            rootfs,
            mount_at,
            ids: HostIds::new(&[], &[]),
            mounts: Vec::with_capacity(spec.mounts.len()),
            dev: None,
            devices: Vec::new(),
            joins: Vec::new(),
            shared: UnshareFlags::empty(),
            own: UnshareFlags::NEWNS,
            user: None,
            pid: PidPlan::Same,
        };
        plan.read_namespaces(joined)?;
        plan.read_mounts()?;
        Ok(plan)
    }

    fn read_namespaces(&mut self, joined: JoinedNamespaces<'a>) -> Result<(), LaunchError> {
        for namespace in &self.spec.linux.namespaces {
            let (link, flag, given) = match namespace.kind {
                NamespaceKind::Network => {
                    (LinkNameSpaceType::Network, UnshareFlags::NEWNET, joined.net)
                }
                NamespaceKind::Ipc => (
                    LinkNameSpaceType::InterProcessCommunication,
                    UnshareFlags::NEWIPC,
                    joined.ipc,
                ),
                NamespaceKind::Uts => (
                    LinkNameSpaceType::HostNameAndNISDomainName,
                    UnshareFlags::NEWUTS,
                    joined.uts,
                ),
                NamespaceKind::Cgroup if namespace.path.is_none() => {
                    self.own |= UnshareFlags::NEWCGROUP;
                    continue;
                }
                NamespaceKind::Cgroup => {
                    return refused("a container cannot join a cgroup namespace");
                }
                NamespaceKind::Pid => {
                    self.pid = match &namespace.path {
                        None => PidPlan::New,
                        Some(path) => PidPlan::Join(namespace_fd(joined.pid, path)?),
                    };
                    continue;
                }
                NamespaceKind::User => {
                    let Some(path) = &namespace.path else {
                        return refused("a container can only join the user namespace of its pod");
                    };
                    self.user = Some(namespace_fd(joined.user, path)?);
                    let linux = &self.spec.linux;
                    if linux.uid_mappings.is_empty() || linux.gid_mappings.is_empty() {
                        return refused("the IDs of the user namespace are missing");
                    }
                    self.ids = HostIds::new(&linux.uid_mappings, &linux.gid_mappings);
                    if self.ids.uid(0).is_none() || self.ids.gid(0).is_none() {
                        return refused("the user namespace has no root: its ID 0 is not mapped");
                    }
                    continue;
                }
                NamespaceKind::Mount | NamespaceKind::Time => continue,
            };
            match &namespace.path {
                Some(path) => self.joins.push((link, namespace_fd(given, path)?)),
                None => self.shared |= flag,
            }
        }
        if self.user.is_some() && !self.shared.is_empty() {
            return refused(
                "a container with a user namespace shares network, IPC and host name with its pod",
            );
        }
        Ok(())
    }

    fn read_mounts(&mut self) -> Result<(), LaunchError> {
        for mount in &self.spec.mounts {
            let options = MountOptions::read(&mount.options);
            let source = if mount.is_bind() {
                MountSource::Bind
            } else if dev::is_dev(mount) && self.dev.is_none() {
                self.dev = Some(dev::make(&options, self.spec, &self.ids)?);
                MountSource::Dev
            } else if mount.kind == "cgroup" {
                MountSource::Cgroup
            } else if mount.is_layers() {
                MountSource::Layers
            } else {
                MountSource::New
            };
            let plan = MountPlan {
                mount,
                options,
                source,
            };
            plan.check(self.user.is_some())?;
            self.mounts.push(plan);
        }
        self.devices = match self.dev {
            Some(_) => {
                let devices = self.spec.linux.devices.iter();
                devices
                    .filter(|device| !device.path.starts_with("/dev"))
                    .collect()
            }
            None => self.spec.linux.devices.iter().collect(),
        };
        if self.user.is_some()
            && let Some(device) = self.devices.first()
        {
            let path = device.path.display();
            return refused(&format!(
                "the device {path} cannot be created in a user namespace: only devices below /dev can"
            ));
        }
        Ok(())
    }
}

impl MountPlan<'_> {
    /// A mount error in runc's words.
    pub(crate) fn failure(&self, reason: &str) -> StepError {
        let source = self.mount.source.display().to_string();
        let source = if source.is_empty() {
            &self.mount.kind
        } else {
            &source
        };
        let to = self.mount.destination.display().to_string();
        StepError(format!(
            "error mounting {source:?} to rootfs at {to:?}: {reason}"
        ))
    }

    fn check(&self, userns: bool) -> Result<(), StepError> {
        if !self.mount.destination.is_absolute() {
            return Err(self.failure("the mount's destination is not absolute"));
        }
        if self.source != MountSource::Bind && self.options.idmap.is_some() {
            return Err(self.failure("only bind mounts can be ID-mapped"));
        }
        if self.source == MountSource::Bind {
            if let Some(option) = self.options.data.first() {
                return Err(
                    self.failure(&format!("a bind mount cannot have the option {option:?}"))
                );
            }
            if userns && matches!(self.options.propagation, Some((libc::MS_SHARED, _))) {
                return Err(self.failure(
                    "mounts of a container in a user namespace cannot propagate to the host (Bidirectional)",
                ));
            }
        }
        Ok(())
    }
}

fn namespace_fd<'a>(
    given: Option<BorrowedFd<'a>>,
    path: &Path,
) -> Result<NamespaceFd<'a>, LaunchError> {
    if let Some(fd) = given {
        return Ok(NamespaceFd::Borrowed(fd));
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(fd) => Ok(NamespaceFd::Owned(fd)),
        Err(error) => {
            let step = format!("cannot open the namespace {}", path.display());
            Err(LaunchError::step(step, error))
        }
    }
}

fn refused<T>(text: &str) -> Result<T, LaunchError> {
    Err(LaunchError::Refused(text.to_owned()))
}
