//! Mounts of volumes.

use std::collections::HashSet;

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path,
    values::{below, choice, room, text},
};
use crate::container::{MountPropagation, RecursiveReadOnly, SubPath, VolumeMount};

pub(super) fn convert(
    mounts: Option<&Vec<k8s::VolumeMount>>,
    volumes: &HashSet<String>,
    privileged: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<VolumeMount> {
    let mut seen = HashSet::new();
    let mut converted = room(mounts.map(Vec::as_slice));
    for (index, mount) in mounts.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        if mount.name.is_empty() {
            errors.required(&name_path, "");
        } else if !volumes.contains(&mount.name) {
            errors.not_found(
                &name_path,
                &mount.name,
                "the pod has no volume of this name",
            );
        }
        let mount_path = absolute(&mount.mount_path);
        if mount.mount_path.is_empty() {
            errors.required(&path.child("mountPath"), "");
        } else if !seen.insert(mount_path.clone()) {
            errors.invalid(
                &path.child("mountPath"),
                &mount.mount_path,
                "must be unique in its container",
            );
        }
        converted.push(VolumeMount {
            volume: mount.name.as_str().into(),
            mount_path: mount_path.into(),
            sub_path: sub_path(mount, &path, errors),
            read_only: mount.read_only.unwrap_or(false),
            propagation: propagation(mount, privileged, &path, errors),
            recursive_read_only: recursive_read_only(mount, &path, errors),
        });
    }
    converted
}

/// Only what is read-only, and stays as it was mounted, can be so with all below.
fn recursive_read_only(
    mount: &k8s::VolumeMount,
    path: &Path<'_>,
    errors: &mut Errors,
) -> RecursiveReadOnly {
    let path = path.child("recursiveReadOnly");
    let known = [
        ("Disabled", RecursiveReadOnly::Disabled),
        ("Enabled", RecursiveReadOnly::Enabled),
        ("IfPossible", RecursiveReadOnly::IfPossible),
    ];
    let written = mount.recursive_read_only.as_ref();
    let Some(written) = written.filter(|mode| !mode.is_empty()) else {
        return RecursiveReadOnly::Disabled;
    };
    let mode = choice(&path, Some(written), &known, errors);
    if mode != RecursiveReadOnly::Disabled {
        if mount.read_only != Some(true) {
            errors.forbidden(&path, "needs readOnly: true");
        }
        let propagation = mount.mount_propagation.as_deref().unwrap_or("None");
        if propagation != "None" {
            errors.forbidden(&path, "needs mountPropagation: None");
        }
    }
    mode
}

/// The kubelet takes a relative path from the root of the container.
fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}

fn sub_path(mount: &k8s::VolumeMount, path: &Path<'_>, errors: &mut Errors) -> SubPath {
    let plain = text(mount.sub_path.as_ref());
    let expression = text(mount.sub_path_expr.as_ref());
    if let Some(plain) = &plain {
        below(&path.child("subPath"), plain, errors);
    }
    if let Some(expression) = &expression {
        below(&path.child("subPathExpr"), expression, errors);
        if plain.is_some() {
            errors.invalid(
                &path.child("subPathExpr"),
                expression,
                "must not stand beside subPath",
            );
        }
    }
    match (plain, expression) {
        (Some(plain), _) => SubPath::Path(plain),
        (None, Some(expression)) => SubPath::Expression(expression),
        (None, None) => SubPath::Whole,
    }
}

fn propagation(
    mount: &k8s::VolumeMount,
    privileged: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) -> MountPropagation {
    let path = path.child("mountPropagation");
    if mount.mount_propagation.is_none() {
        return MountPropagation::Private;
    }
    let known = [
        ("None", MountPropagation::Private),
        ("Bidirectional", MountPropagation::Bidirectional),
        ("HostToContainer", MountPropagation::HostToContainer),
    ];
    let propagation = choice(&path, mount.mount_propagation.as_ref(), &known, errors);
    if propagation == MountPropagation::Bidirectional && !privileged {
        errors.forbidden(&path, "Bidirectional needs a privileged container");
    }
    propagation
}
