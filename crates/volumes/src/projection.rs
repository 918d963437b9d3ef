//! Volumes made of files: `configMap`, `secret`, `downwardAPI` and `projected`. All but the first lie
//! in memory, so that nothing secret reaches a disk.

use std::{
    io,
    path::{Path, PathBuf},
};

use rubelet_api::{
    container::Container,
    downward::Allocatable,
    objects::PodObjects,
    pod::Pod,
    resources::Bytes,
    volume::{Medium, Volume, VolumeSource},
};

use crate::{
    atomic_writer::{self, WriteError},
    dirs::{PodDirs, UnsafeName},
    empty_dir::{self, EmptyDirError, EmptyDirRequest},
    folder,
    ownership::{self, Access, OwnershipError},
    payload::{self, PayloadError},
};

// Names of the plugins as folders.
const CONFIG_MAP: &str = "kubernetes.io~configmap";
const DOWNWARD_API: &str = "kubernetes.io~downward-api";
const PROJECTED: &str = "kubernetes.io~projected";
const SECRET: &str = "kubernetes.io~secret";

/// The folders of all plugins that make volumes of files.
pub(crate) const PLUGINS_OF_FILES: [&str; 4] = [CONFIG_MAP, DOWNWARD_API, PROJECTED, SECRET];

/// Why a volume made of files can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ProjectionError {
    /// Its name can't be used.
    #[error(transparent)]
    Name(#[from] UnsafeName),
    /// What is to be in it is not known.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// The folder or the memory that holds it can't be had.
    #[error(transparent)]
    Folder(#[from] EmptyDirError),
    /// A folder to mount another volume on can't be made.
    #[error("unable to create nested volume mountpoints: {}", path.display())]
    Nested {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Its group can't be set.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
}

/// A volume that is ready.
pub(crate) struct Projected {
    pub(crate) path: PathBuf,
    pub(crate) warning: Option<String>,
}

/// Makes the volume, which must be one made of files, or brings its files up to date.
pub(crate) fn prepare(
    pod: &Pod,
    volume: &Volume,
    dirs: &PodDirs,
    objects: &PodObjects,
    allocatable: Allocatable,
    memory_bound: Bytes,
) -> Result<Projected, ProjectionError> {
    let (plugin, medium) = match &volume.source {
        VolumeSource::ConfigMap(_) => (CONFIG_MAP, Medium::Disk),
        VolumeSource::DownwardApi { .. } => (DOWNWARD_API, Medium::Memory),
        VolumeSource::Secret(_) => (SECRET, Medium::Memory),
        VolumeSource::Projected { .. }
        | VolumeSource::EmptyDir { .. }
        | VolumeSource::HostPath { .. }
        | VolumeSource::Image { .. } => (PROJECTED, Medium::Memory),
    };
    let payload = payload::of(pod, volume, objects, allocatable)?;
    let path = dirs.volume(plugin, &volume.name)?;
    let fs_group = pod.spec.security.fs_group;
    let request = EmptyDirRequest {
        name: &volume.name,
        medium,
        size: memory_bound,
        fs_group,
        on_root_mismatch: false,
    };
    let marker = dirs.wrapped_marker(&volume.name)?;
    let warning = empty_dir::set_up(&path, &marker, &request)?;
    make_nested(pod, &volume.name, &path)?;
    atomic_writer::write(&path, &payload, || match fs_group {
        Some(group) => Ok(ownership::apply(&path, group, Access::Read, false)?),
        None => Ok::<_, ProjectionError>(()),
    })?;
    Ok(Projected { path, warning })
}

/// Containers can't write to the volume, so folders for volumes that are mounted within it are made
/// here.
fn make_nested(pod: &Pod, volume: &str, dir: &Path) -> Result<(), ProjectionError> {
    let ephemeral = pod.spec.ephemeral_containers.iter();
    let containers = pod
        .spec
        .all_containers()
        .chain(ephemeral.map(|one| &one.container));
    for nested in containers.flat_map(|container| nested(container, volume)) {
        let path = dir.join(nested);
        folder::ensure(&path, 0o755).map_err(|source| ProjectionError::Nested { path, source })?;
    }
    Ok(())
}

/// Where a container mounts something within the volume, below the volume.
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
            // With a way up in it, it would lead out of the volume.
            if other.len() > own.len()
                && other.starts_with(own)
                && !other.iter().any(|part| part == "..")
            {
                found.push(other[own.len()..].join("/"));
            }
        }
    }
    // What lies in another nested one is that volume's business.
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
