//! Volumes.

use std::{collections::HashSet, time::Duration};

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path,
    container::PULL_POLICIES,
    names,
    objects::{Object, default_mode, downward, file, no_user},
    values::{choice, no_way_up, quantity, room},
};
use crate::volume::{FileVolume, HostPathCheck, Medium, Projection, Volume, VolumeSource};

/// Default of `expirationSeconds` of a token.
const TOKEN_LIFETIME: i64 = 3600;

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
    spec: &k8s::PodSpec,
    containers: &HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Volume> {
    let volumes = spec.volumes.as_deref();
    let own_users = spec.host_users == Some(false);
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
        if let Some(source) = source(volume, containers, own_users, &path, errors) {
            converted.push(Volume {
                name: volume.name.as_str().into(),
                source,
            });
        }
    }
    converted
}

/// The only source; of several, all but the first are mistakes.
fn source(
    volume: &k8s::Volume,
    containers: &HashSet<String>,
    own_users: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<VolumeSource> {
    let mut first: Option<(&str, VolumeSource)> = None;
    let mut found = |field: &'static str, source: VolumeSource, errors: &mut Errors| {
        if let Some((other, _)) = &first {
            let detail = format_args!("a volume has one source; {other} is given too");
            errors.forbidden(&path.child(field), detail);
        } else {
            first = Some((field, source));
        }
    };
    if let Some(source) = &volume.empty_dir {
        let path = path.child("emptyDir");
        found(
            "emptyDir",
            empty_dir(source, own_users, &path, errors),
            errors,
        );
    }
    if let Some(source) = &volume.host_path {
        let path = path.child("hostPath");
        found("hostPath", host_path(source, &path, errors), errors);
    }
    if let Some(source) = &volume.image {
        let path = path.child("image");
        found("image", image(source, &path, errors), errors);
    }
    if let Some(source) = &volume.config_map {
        let object = Object {
            name: Some(&source.name),
            items: source.items.as_ref(),
            optional: source.optional,
        };
        let path = path.child("configMap");
        no_user(source.default_user, "defaultUser", &path, errors);
        let object = object.volume(source.default_mode, &path, errors);
        found(
            "configMap",
            VolumeSource::Files(FileVolume::ConfigMap(object)),
            errors,
        );
    }
    if let Some(source) = &volume.secret {
        let object = Object {
            name: source.secret_name.as_ref(),
            items: source.items.as_ref(),
            optional: source.optional,
        };
        let path = path.child("secret");
        no_user(source.default_user, "defaultUser", &path, errors);
        let object = object.volume(source.default_mode, &path, errors);
        found(
            "secret",
            VolumeSource::Files(FileVolume::Secret(object)),
            errors,
        );
    }
    if let Some(source) = &volume.downward_api {
        let path = path.child("downwardAPI");
        let source = FileVolume::DownwardApi {
            items: downward(source.items.as_ref(), containers, &path, errors),
            default_mode: default_mode(source.default_mode, &path, errors),
        };
        found("downwardAPI", VolumeSource::Files(source), errors);
    }
    if let Some(source) = &volume.projected {
        let path = path.child("projected");
        let source = FileVolume::Projected {
            sources: projections(source, containers, &path, errors),
            default_mode: default_mode(source.default_mode, &path, errors),
        };
        found("projected", VolumeSource::Files(source), errors);
    }
    first.map(|(_, source)| source)
}

/// The sources that are supported; the table refuses the others.
fn projections(
    projected: &k8s::ProjectedVolumeSource,
    containers: &HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Projection> {
    let path = path.child("sources");
    let mut converted = room(projected.sources.as_deref());
    for (index, source) in projected.sources.iter().flatten().enumerate() {
        let path = path.index(index);
        if let Some(source) = &source.config_map {
            let object = Object {
                name: Some(&source.name),
                items: source.items.as_ref(),
                optional: source.optional,
            };
            let object = object.projection(&path.child("configMap"), errors);
            converted.push(Projection::ConfigMap(object));
        }
        if let Some(source) = &source.secret {
            let object = Object {
                name: Some(&source.name),
                items: source.items.as_ref(),
                optional: source.optional,
            };
            let object = object.projection(&path.child("secret"), errors);
            converted.push(Projection::Secret(object));
        }
        if let Some(source) = &source.downward_api {
            let path = path.child("downwardAPI");
            converted.push(Projection::DownwardApi {
                items: downward(source.items.as_ref(), containers, &path, errors),
            });
        }
        if let Some(source) = &source.service_account_token {
            let path = path.child("serviceAccountToken");
            no_user(source.user, "user", &path, errors);
            let seconds = source.expiration_seconds.unwrap_or(TOKEN_LIFETIME);
            converted.push(Projection::ServiceAccountToken {
                audience: source.audience.as_deref().unwrap_or_default().into(),
                expiration: Duration::from_secs(seconds.max(0).unsigned_abs()),
                path: file(&source.path, &path.child("path"), errors),
            });
        }
    }
    converted
}

fn empty_dir(
    empty_dir: &k8s::EmptyDirVolumeSource,
    own_users: bool,
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
    // A project quota may hold the volumes of a pod with users of its own to their limits.
    if size_limit.is_some() && medium == Medium::Disk && !own_users && !errors.are_relaxed() {
        let path = path.child("sizeLimit");
        errors.no_eviction(&path);
    }
    VolumeSource::EmptyDir { medium, size_limit }
}

/// Its default policy was filled in by then.
fn image(source: &k8s::ImageVolumeSource, path: &Path<'_>, errors: &mut Errors) -> VolumeSource {
    let reference = source.reference.as_deref().unwrap_or_default();
    if reference.is_empty() {
        errors.required(&path.child("reference"), "");
    }
    VolumeSource::Image {
        reference: reference.into(),
        pull_policy: choice(
            &path.child("pullPolicy"),
            source.pull_policy.as_ref(),
            &PULL_POLICIES,
            errors,
        ),
    }
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
