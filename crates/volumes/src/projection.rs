//! Volumes of files: `configMap`, `secret`, `downwardAPI` and `projected`. All but the first are in
//! memory, so that secrets never reach a disk.

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_api::{
    container::Container,
    objects::PodObjects,
    pod::Pod,
    volume::{FileVolume, Medium},
};

use crate::{
    atomic_writer::{self, WriteError},
    directory,
    dirs::{PodDirs, UnsafeName},
    empty_dir::{self, EmptyDirError, EmptyDirRequest},
    ownership::{self, GroupAccess, OwnershipError},
    payload::{self, PayloadError},
    settings::VolumeSettings,
};

/// A volume of files can't be created.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// Its name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// Its content can't be computed.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Its directory or tmpfs can't be created.
    #[error(transparent)]
    Directory(#[from] EmptyDirError),
    /// A mount point of another volume can't be created.
    #[error("unable to create nested volume mountpoints: {}", path.display())]
    Nested {
        /// The directory.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Its group can't be set.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
}

/// A prepared volume.
pub(crate) struct Projected {
    pub(crate) path: PathBuf,
    pub(crate) warning: Option<String>,
}

/// Creates the volume, or updates its files.
pub(crate) fn prepare(
    pod: &Pod,
    name: &str,
    files: &FileVolume,
    dirs: &PodDirs,
    objects: &PodObjects,
    settings: &VolumeSettings,
) -> Result<Projected, ProjectionError> {
    let medium = match files {
        FileVolume::ConfigMap(_) => Medium::Disk,
        FileVolume::DownwardApi { .. } | FileVolume::Secret(_) | FileVolume::Projected { .. } => {
            Medium::Memory
        }
    };
    let payload = payload::of(pod, name, files, objects, settings.allocatable)?;
    let path = dirs.volume(files.plugin(), name)?;
    let fs_group = pod.spec.security.fs_group;
    let request = EmptyDirRequest {
        name,
        medium,
        size: settings.memory_bound,
        fs_group,
        on_root_mismatch: false,
        quota: None,
    };
    let marker = dirs.wrapped_marker(name)?;
    let warning = empty_dir::set_up(&path, &marker, &request)?;
    make_nested(pod, name, &path)?;
    atomic_writer::write(&path, &payload, || match fs_group {
        Some(group) => Ok(ownership::apply(&path, group, GroupAccess::Read, false)?),
        None => Ok::<_, ProjectionError>(()),
    })?;
    Ok(Projected { path, warning })
}

/// Containers can't write to the volume, so mount points within it are created here.
fn make_nested(pod: &Pod, volume: &str, dir: &Path) -> Result<(), ProjectionError> {
    let ephemeral = pod.spec.ephemeral_containers.iter();
    let containers = pod
        .spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container));
    for nested in containers.flat_map(|container| nested(container, volume)) {
        let path = dir.join(nested);
        directory::ensure(&path, 0o755)
            .map_err(|source| ProjectionError::Nested { path, source })?;
    }
    Ok(())
}

/// The paths within the volume at which a container mounts other volumes.
fn nested(container: &Container, volume: &str) -> Vec<String> {
    let parts = |path: &str| -> Vec<String> {
        path.split('/')
            .filter(|part| !matches!(*part, "" | "."))
            .map(str::to_owned)
            .collect()
    };
    let all: Vec<(bool, Vec<String>)> = container
        .mounts
        .iter()
        .map(|mount| (*mount.volume == *volume, parts(&mount.mount_path)))
        .collect();
    let mut found = Vec::new();
    for (_, own) in all.iter().filter(|(is_own, _)| *is_own) {
        for (_, other) in &all {
            // A `..` component would lead out of the volume.
            if other.len() > own.len()
                && other.starts_with(own)
                && !other.iter().any(|part| part == "..")
            {
                found.push(other[own.len()..].join("/"));
            }
        }
    }
    // A mount point in another nested volume belongs to that volume.
    let outer = |path: &String| {
        !found.iter().any(|other| {
            path.strip_prefix(other.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        })
    };
    found.iter().filter(|path| outer(path)).cloned().collect()
}

#[cfg(test)]
mod tests;
