//! The mounts of a container.

use std::collections::BTreeMap;

use rubelet_api::{
    container::{Container, MountPropagation, RecursiveReadOnly, SubPath, VolumeMount},
    pod::Pod,
    security::UserRange,
    volume::VolumeSource,
};
use rubelet_cri::v1;

use super::security::id_mappings;

/// Host paths and images for the mounts of a container.
#[derive(Debug, Clone, Default)]
pub struct ContainerFiles {
    /// Host path of each volume, by name.
    pub volumes: BTreeMap<Box<str>, String>,
    /// Host path of each mount with a `subPath`, by index in `volumeMounts`; for image volumes the
    /// path inside the image.
    pub sub_paths: BTreeMap<usize, String>,
    /// Host path of the generated `/etc/hosts`.
    pub etc_hosts: Option<String>,
    /// Host path of the termination message.
    pub termination_log: Option<String>,
    /// The runtime's image identifier of each image volume, by name.
    pub images: BTreeMap<Box<str>, String>,
    /// The pod's ID range, if it has a user namespace.
    pub users: Option<UserRange>,
    /// True if the pod's runtime handler supports recursive read-only mounts.
    pub recursive_read_only: bool,
}

/// A mount that can't be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// Its volume has no path on the host.
    #[error("volumeMounts[{index}]: volume {volume:?} is not prepared")]
    NotPrepared {
        /// Index in `volumeMounts`.
        index: usize,
        /// The volume it names.
        volume: Box<str>,
    },
    /// `recursiveReadOnly: Enabled`, but the runtime handler does not support it.
    #[error(
        "volume {volume:?} requested recursive read-only mode, but it is not supported by the runtime"
    )]
    NotRecursive {
        /// The volume it names.
        volume: Box<str>,
    },
}

/// Volume mounts in order, those of configMap, secret, downwardAPI and projected volumes always
/// read-only; then `/etc/hosts` unless the container mounts that path itself, then the termination
/// message.
///
/// # Errors
/// See [`MountError`].
pub fn mounts(
    pod: &Pod,
    container: &Container,
    files: &ContainerFiles,
) -> Result<Vec<v1::Mount>, MountError> {
    let mut mounts = Vec::with_capacity(container.mounts.len() + 2);
    for (index, mount) in container.mounts.iter().enumerate() {
        if let Some(reference) = image_of(pod, &mount.volume) {
            mounts.push(image_mount(files, index, mount, reference)?);
            continue;
        }
        let source = match mount.sub_path {
            SubPath::Whole => files.volumes.get(&mount.volume),
            SubPath::Path(_) | SubPath::Expression(_) => files.sub_paths.get(&index),
        };
        let host_path = source
            .ok_or_else(|| MountError::NotPrepared {
                index,
                volume: mount.volume.clone(),
            })?
            .clone();
        mounts.push(v1::Mount {
            container_path: mount.mount_path.to_string(),
            recursive_read_only: recursive_read_only(mount, files)?,
            host_path,
            readonly: mount.read_only || is_read_only(pod, &mount.volume),
            propagation: match mount.propagation {
                MountPropagation::Private => v1::MountPropagation::PropagationPrivate,
                MountPropagation::HostToContainer => {
                    v1::MountPropagation::PropagationHostToContainer
                }
                MountPropagation::Bidirectional => v1::MountPropagation::PropagationBidirectional,
            }
            .into(),
            ..v1::Mount::default()
        });
    }
    let own_hosts = container
        .mounts
        .iter()
        .any(|mount| &*mount.mount_path == "/etc/hosts");
    if let Some(host_path) = files.etc_hosts.as_ref().filter(|_| !own_hosts) {
        mounts.push(plain("/etc/hosts", host_path));
    }
    if let Some(host_path) = &files.termination_log {
        mounts.push(plain(&container.termination_message_path, host_path));
    }
    // ID-mapped mounts: inside the pod the files have the owners that they have on the host.
    if let Some(users) = files.users {
        for mount in mounts.iter_mut().filter(|mount| mount.image.is_none()) {
            mount.uid_mappings = id_mappings(users);
            mount.gid_mappings = id_mappings(users);
        }
    }
    Ok(mounts)
}

/// True for a recursive read-only mount (kubelet: `resolveRecursiveReadOnly`).
fn recursive_read_only(mount: &VolumeMount, files: &ContainerFiles) -> Result<bool, MountError> {
    match mount.recursive_read_only {
        RecursiveReadOnly::Disabled => Ok(false),
        RecursiveReadOnly::IfPossible => Ok(files.recursive_read_only),
        RecursiveReadOnly::Enabled if files.recursive_read_only => Ok(true),
        RecursiveReadOnly::Enabled => Err(MountError::NotRecursive {
            volume: mount.volume.clone(),
        }),
    }
}

/// The image reference of an image volume.
fn image_of<'a>(pod: &'a Pod, volume: &str) -> Option<&'a str> {
    match &pod.spec.volume(volume)?.source {
        VolumeSource::Image { reference, .. } => Some(reference),
        _ => None,
    }
}

/// The mount of an image volume, whose files the runtime provides.
fn image_mount(
    files: &ContainerFiles,
    index: usize,
    mount: &VolumeMount,
    reference: &str,
) -> Result<v1::Mount, MountError> {
    let image = files
        .images
        .get(&mount.volume)
        .ok_or_else(|| MountError::NotPrepared {
            index,
            volume: mount.volume.clone(),
        })?;
    Ok(v1::Mount {
        container_path: mount.mount_path.to_string(),
        readonly: true,
        recursive_read_only: recursive_read_only(mount, files)?,
        image: Some(v1::ImageSpec {
            image: image.clone(),
            user_specified_image: reference.to_owned(),
            ..v1::ImageSpec::default()
        }),
        image_sub_path: files.sub_paths.get(&index).cloned().unwrap_or_default(),
        ..v1::Mount::default()
    })
}

/// True for volumes whose files the agent updates: containers must not change them.
fn is_read_only(pod: &Pod, volume: &str) -> bool {
    pod.spec
        .volume(volume)
        .is_some_and(|volume| volume.source.is_read_only())
}

fn plain(container_path: &str, host_path: &str) -> v1::Mount {
    v1::Mount {
        container_path: container_path.to_owned(),
        host_path: host_path.to_owned(),
        ..v1::Mount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::build;

    #[test]
    fn what_is_below_a_mount_is_read_only_where_the_handler_can_make_it_so() {
        use RecursiveReadOnly::{Disabled, Enabled, IfPossible};
        let mut pod = build::pod(rubelet_api::pod::RestartPolicy::Always, &[], &["a"]);
        for (mode, can, expected) in [
            (Disabled, true, Ok(false)),
            (IfPossible, true, Ok(true)),
            (IfPossible, false, Ok(false)),
            (Enabled, true, Ok(true)),
            (
                Enabled,
                false,
                Err(
                    "volume \"v\" requested recursive read-only mode, but it is not supported \
                     by the runtime",
                ),
            ),
        ] {
            pod.spec.containers[0].mounts = vec![VolumeMount {
                volume: "v".into(),
                mount_path: "/v".into(),
                sub_path: SubPath::Whole,
                read_only: true,
                propagation: MountPropagation::Private,
                recursive_read_only: mode,
            }];
            let files = ContainerFiles {
                volumes: BTreeMap::from([("v".into(), "/host/v".to_owned())]),
                recursive_read_only: can,
                ..ContainerFiles::default()
            };
            let made = mounts(&pod, &pod.spec.containers[0], &files);
            let made = made.map(|mounts| mounts[0].recursive_read_only);
            let made = made.map_err(|error| error.to_string());
            assert_eq!(made, expected.map_err(str::to_owned), "{mode:?} {can}");
        }
    }
}
