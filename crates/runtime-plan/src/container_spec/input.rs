//! What a specification is made from.

use std::path::{Path, PathBuf};

use rubelet_cri::v1;
use rubelet_oci::image::ImageConfig;

use crate::{cgroup::ContainerCgroup, host::HostFacts, user::ResolvedUser};

/// Everything a container's specification is made from.
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
    /// What the image's author wants.
    pub image: &'a ImageConfig,
    /// The user, from [`crate::user::resolve`].
    pub user: &'a ResolvedUser,
    /// The host.
    pub host: &'a HostFacts,
    /// Where the container's processes live.
    pub namespaces: Namespaces,
    /// The container's cgroup, from [`crate::cgroup::container`].
    pub cgroup: &'a ContainerCgroup,
    /// The root file system, absolute or relative to the bundle.
    pub rootfs: &'a Path,
    /// The pod's own files.
    pub files: PodFiles<'a>,
    /// What was found for each of `container.mounts`, in the same order.
    pub sources: &'a [MountSource],
    /// The image's volumes: where [`crate::image_volumes::placed`] puts them, and the directory that
    /// was made for each.
    pub image_volumes: &'a [ImageVolume],
    /// What was found at each `container.devices[n].host_path`, in the same order: one node, or all
    /// those below a directory.
    pub devices: &'a [Vec<HostDevice>],
    /// All devices of the host, for privileged containers; empty for others.
    pub host_devices: &'a [HostDevice],
    /// Text of the seccomp profile that [`crate::profile::seccomp_file`] names.
    pub seccomp_profile: Option<&'a str>,
    /// AppArmor profiles loaded into the kernel.
    pub apparmor_profiles: &'a [String],
    /// Whether the runtime's own AppArmor profile, as it is loaded, denies the address families that
    /// the default filter of system calls denies.
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

/// Which namespace of a kind a container is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placement {
    /// That of the host.
    Host,
    /// One that exists, by its file.
    Join(PathBuf),
    /// One of its own.
    New,
}

/// A container's namespaces. Mount namespaces are always its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespaces {
    /// Network.
    pub network: Placement,
    /// IPC.
    pub ipc: Placement,
    /// Host name.
    pub uts: Placement,
    /// Processes.
    pub pid: Placement,
    /// Users.
    pub user: Placement,
}

/// What was found at the source of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountSource {
    /// The path with symbolic links resolved.
    pub path: PathBuf,
    /// Mount point it is on.
    pub mount_point: PathBuf,
    /// How mounts below that mount point spread.
    pub propagation: Propagation,
    /// Directories of the layers of the image that is mounted, the topmost first; empty for a path of the
    /// host.
    pub layers: Vec<PathBuf>,
}

/// A volume that the image declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageVolume {
    /// Where it is mounted: absolute, without symbolic links in the image.
    pub destination: PathBuf,
    /// The runtime's own directory on the host, filled from the image.
    pub source: PathBuf,
}

/// How mount events spread from a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// Nowhere.
    Private,
    /// It receives, and does not pass on.
    Slave,
    /// It receives and passes on.
    Shared,
}

/// A device node of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDevice {
    /// Its path on the host, links resolved.
    pub path: PathBuf,
    /// Character or block; others are no devices.
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
