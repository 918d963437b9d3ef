//! The input for a container's specification.

use std::path::{Path, PathBuf};

use rubelet_cgroup_plan::ContainerCgroup;
use rubelet_cri::v1;
use rubelet_oci::image::ImageConfig;

use crate::{host::HostFacts, user::ResolvedUser};

/// The input for a container's specification.
#[derive(Debug, Clone)]
pub struct SpecInput<'a> {
    /// The container.
    pub id: &'a str,
    /// Its sandbox.
    pub sandbox_id: &'a str,
    /// The pod's configuration as it came with the container.
    pub sandbox: &'a v1::PodSandboxConfig,
    /// The container's configuration.
    pub container: &'a v1::ContainerConfig,
    /// The image's configuration.
    pub image: &'a ImageConfig,
    /// The user, from [`crate::user::resolve`].
    pub user: &'a ResolvedUser,
    /// The host.
    pub host: &'a HostFacts,
    /// The container's namespaces.
    pub namespaces: ContainerNamespaces,
    /// The container's cgroup, from [`rubelet_cgroup_plan::runtime_cgroup::container`].
    pub cgroup: &'a ContainerCgroup,
    /// The root file system, absolute or relative to the bundle.
    pub rootfs: &'a Path,
    /// The pod's own files.
    pub files: PodFiles<'a>,
    /// The source of each of `container.mounts`, in the same order.
    pub sources: &'a [MountSource],
    /// The image's volumes: their mount points by [`crate::image_volumes::placed`], and the
    /// directory that was created for each.
    pub image_volumes: &'a [ImageVolume],
    /// The nodes at each `container.devices[n].host_path`, in the same order: one node, or all
    /// nodes below a directory.
    pub devices: &'a [Vec<HostDevice>],
    /// All devices of the host, for privileged containers; empty for others.
    pub host_devices: &'a [HostDevice],
    /// Text of the seccomp profile that [`crate::profile::seccomp_file`] names.
    pub seccomp_profile: Option<&'a str>,
    /// AppArmor profiles loaded into the kernel.
    pub apparmor_profiles: &'a [String],
    /// The runtime's own AppArmor profile, as loaded, denies the address families that the default
    /// seccomp filter denies.
    pub apparmor_denies_families: bool,
}

/// Files of a pod that its containers get, on the host.
#[derive(Debug, Clone, Copy)]
pub struct PodFiles<'a> {
    /// `/dev/shm`: the pod's own, or the host's with host IPC.
    pub shm: &'a Path,
    /// `/etc/resolv.conf`.
    pub resolv_conf: &'a Path,
    /// `/etc/hostname`.
    pub hostname: &'a Path,
    /// `/etc/hosts` for containers that don't bring their own.
    pub hosts: Option<&'a Path>,
}

/// The namespace of a kind that a container is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamespacePlacement {
    /// That of the host.
    Host,
    /// An existing one, by its file.
    Join(PathBuf),
    /// A new one.
    New,
}

/// A container's namespaces. Mount namespaces are always its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerNamespaces {
    /// Network.
    pub network: NamespacePlacement,
    /// IPC.
    pub ipc: NamespacePlacement,
    /// Host name.
    pub uts: NamespacePlacement,
    /// Process IDs.
    pub pid: NamespacePlacement,
    /// User and group IDs.
    pub user: NamespacePlacement,
}

/// The source of a mount, as found on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountSource {
    /// The path with symbolic links resolved.
    pub path: PathBuf,
    /// Mount point it is on.
    pub mount_point: PathBuf,
    /// Propagation of that mount point.
    pub propagation: Propagation,
    /// Directories of the layers of the image that is mounted, the topmost first; empty for a path of the
    /// host.
    pub layers: Vec<PathBuf>,
}

/// A volume that the image declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageVolume {
    /// Mount point: absolute, without symbolic links in the image.
    pub destination: PathBuf,
    /// The runtime's own directory on the host, filled from the image.
    pub source: PathBuf,
}

/// Propagation of mount events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// No propagation.
    Private,
    /// It receives events and does not send them.
    Slave,
    /// It receives and sends events.
    Shared,
}

/// A device node of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDevice {
    /// Its path on the host, links resolved.
    pub path: PathBuf,
    /// Character or block device.
    pub kind: rubelet_oci::DeviceKind,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}
