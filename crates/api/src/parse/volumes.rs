//! Volumes.

use std::collections::HashSet;

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, names,
    values::{choice, no_way_up, quantity, room},
};
use crate::volume::{HostPathCheck, Medium, Volume, VolumeSource};

/// The names that mounts may refer to, also those of volumes that are refused.
pub(super) fn names(volumes: Option<&[k8s::Volume]>) -> HashSet<String> {
    volumes
        .into_iter()
        .flatten()
        .map(|volume| volume.name.clone())
        .collect()
}

/// Converts the volumes whose kind is supported; the table refuses the others.
pub(super) fn convert(
    volumes: Option<&[k8s::Volume]>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Volume> {
    let mut seen = HashSet::new();
    let mut converted = room(volumes);
    for (index, volume) in volumes.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        if volume.name.is_empty() {
            errors.required(&name_path, "");
        } else {
            names::label(&name_path, &volume.name, errors);
            if !seen.insert(volume.name.as_str()) {
                errors.duplicate(&name_path, &volume.name);
            }
        }
        let source = match (&volume.empty_dir, &volume.host_path) {
            (Some(_), Some(_)) => {
                errors.forbidden(
                    &path.child("hostPath"),
                    "a volume has one source; emptyDir is given too",
                );
                continue;
            }
            (Some(empty_dir), None) => self::empty_dir(empty_dir, &path.child("emptyDir"), errors),
            (None, Some(host_path)) => self::host_path(host_path, &path.child("hostPath"), errors),
            (None, None) => continue,
        };
        converted.push(Volume {
            name: volume.name.as_str().into(),
            source,
        });
    }
    converted
}

fn empty_dir(
    empty_dir: &k8s::EmptyDirVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) -> VolumeSource {
    let medium_path = path.child("medium");
    let medium = match empty_dir.medium.as_deref().unwrap_or_default() {
        "" => Medium::Disk,
        "Memory" => Medium::Memory,
        "HugePages" => {
            errors.not_yet(
                &medium_path,
                "huge pages as a medium come with a later release",
            );
            Medium::Disk
        }
        huge if huge.starts_with("HugePages-") => {
            errors.not_yet(
                &medium_path,
                "huge pages as a medium come with a later release",
            );
            Medium::Disk
        }
        other => {
            errors.unsupported(&medium_path, other, &["", "Memory"]);
            Medium::Disk
        }
    };
    let size_limit = empty_dir
        .size_limit
        .as_ref()
        .map(|size| quantity(&path.child("sizeLimit"), &size.0, errors).units());
    if size_limit.is_some() && medium == Medium::Disk {
        errors.not_yet(
            &path.child("sizeLimit"),
            "the size of a volume on disk is not watched yet; use the medium Memory, or leave the \
             limit out",
        );
    }
    VolumeSource::EmptyDir { medium, size_limit }
}

fn host_path(
    host_path: &k8s::HostPathVolumeSource,
    path: &Path<'_>,
    errors: &mut Errors,
) -> VolumeSource {
    use HostPathCheck as Check;
    let path_path = path.child("path");
    if host_path.path.is_empty() {
        errors.required(&path_path, "");
    } else {
        if !host_path.path.starts_with('/') {
            errors.invalid(&path_path, &host_path.path, "must be an absolute path");
        }
        no_way_up(&path_path, &host_path.path, errors);
    }
    let known = [
        Check::Unchecked,
        Check::BlockDevice,
        Check::CharDevice,
        Check::Directory,
        Check::DirectoryOrCreate,
        Check::File,
        Check::FileOrCreate,
        Check::Socket,
    ]
    .map(|check| (check.as_str(), check));
    let check = choice(
        &path.child("type"),
        host_path.type_.as_ref(),
        &known,
        errors,
    );
    VolumeSource::HostPath {
        path: host_path.path.as_str().into(),
        check,
    }
}
