//! The mounts of a container: the kernel's file systems, the pod's files, the caller's mounts, the
//! image's volumes.

mod image;
mod requested;
mod standard;

use std::path::{Component, Path, PathBuf};

use rubelet_cri::v1;
use rubelet_oci::{Mount, Namespace, NamespaceKind};

use super::{Propagation, SpecInput};
use crate::Refusal;

/// The mounts, and the propagation of the root that they need.
pub(super) struct ContainerMounts {
    pub(super) mounts: Vec<Mount>,
    pub(super) root_propagation: &'static str,
}

pub(super) fn mounts(
    input: &SpecInput<'_>,
    security: &v1::LinuxContainerSecurityContext,
    has_userns: bool,
    namespaces: &[Namespace],
) -> Result<ContainerMounts, Refusal> {
    let host_network = !namespaces
        .iter()
        .any(|one| one.kind == NamespaceKind::Network);
    let mut wanted = Vec::new();
    let mut root_propagation = "";
    for (index, mount) in input.container.mounts.iter().enumerate() {
        let (mount, propagation) = requested::requested_mount(input, index, mount)?;
        root_propagation = match (root_propagation, propagation) {
            (_, Propagation::Shared) | ("rshared", _) => "rshared",
            (_, Propagation::Slave) | ("rslave", _) => "rslave",
            (_, Propagation::Private) => "",
        };
        wanted.push(mount);
    }
    let requested = wanted.len();
    for mount in standard::of_pod(input, security).chain(standard::volumes_of_image(input)) {
        if !wanted[..requested]
            .iter()
            .any(|own| own.destination == mount.destination)
        {
            wanted.push(mount);
        }
    }
    // Parents are mounted first, so that they hide nothing.
    wanted.sort_by_key(|mount| mount.destination.components().count());
    let own_dev = wanted
        .iter()
        .any(|mount| mount.destination == Path::new("/dev"));
    let mut mounts = standard::of_kernel(security.privileged, has_userns && host_network);
    mounts.retain(|mount| {
        let hidden = own_dev && mount.destination.starts_with("/dev");
        !hidden
            && !wanted
                .iter()
                .any(|own| own.destination == mount.destination)
    });
    mounts.append(&mut wanted);
    Ok(ContainerMounts {
        mounts,
        root_propagation,
    })
}

/// The path without `.`, `..` and doubled slashes, by its text alone.
pub(crate) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => cleaned.push(name),
            Component::ParentDir => {
                cleaned.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    cleaned
}
