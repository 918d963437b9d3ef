//! References to config maps and secrets, and the files of volumes that are made of them.

use std::collections::HashSet;

use k8s_openapi::api::core::v1 as k8s;

use super::{Errors, Path, env, values::below};
use crate::volume::{DownwardContent, DownwardFile, KeyToPath, ObjectProjection, ObjectVolume};

/// Default of `defaultMode`.
const DEFAULT_MODE: i32 = 0o644;
/// The most that a mode may be: permissions alone.
const MAX_MODE: i32 = 0o777;

/// What `configMap` and `secret` volumes have in common.
pub(super) struct Object<'a> {
    pub(super) name: Option<&'a String>,
    pub(super) items: Option<&'a Vec<k8s::KeyToPath>>,
    pub(super) optional: Option<bool>,
}

/// The owner of files (`defaultUser`, `user`) is an alpha feature of the API server. Where a row of the support matrix covers
/// the whole object, the fields are refused here.
pub(super) fn no_user(user: Option<i64>, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if user.is_some() {
        errors.not_yet(
            &path.child(field),
            "the feature AtomicWriteVolumeUserFields is alpha",
        );
    }
}

impl Object<'_> {
    pub(super) fn volume(
        &self,
        default_mode: Option<i32>,
        path: &Path<'_>,
        errors: &mut Errors,
    ) -> ObjectVolume {
        let ObjectProjection {
            name,
            items,
            optional,
        } = self.projection(path, errors);
        ObjectVolume {
            name,
            items,
            default_mode: self::default_mode(default_mode, path, errors),
            optional,
        }
    }

    pub(super) fn projection(&self, path: &Path<'_>, errors: &mut Errors) -> ObjectProjection {
        let path = path.child("items");
        let items = self.items.into_iter().flatten().enumerate();
        ObjectProjection {
            name: self.name.map_or("", String::as_str).into(),
            items: items
                .map(|(index, item)| {
                    let path = path.index(index);
                    no_user(item.user, "user", &path, errors);
                    KeyToPath {
                        key: item.key.as_str().into(),
                        path: file(&item.path, &path.child("path"), errors),
                        mode: mode(item.mode, &path.child("mode"), errors),
                    }
                })
                .collect(),
            optional: self.optional.unwrap_or(false),
        }
    }
}

/// Files of the downward API.
pub(super) fn downward(
    items: Option<&Vec<k8s::DownwardAPIVolumeFile>>,
    containers: &HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<DownwardFile> {
    let path = path.child("items");
    let mut files = Vec::new();
    for (index, item) in items.into_iter().flatten().enumerate() {
        let path = path.index(index);
        let content = match (&item.field_ref, &item.resource_field_ref) {
            (Some(_), Some(_)) => {
                errors.invalid(&path, "resource", "fieldRef is given too");
                None
            }
            (None, None) => {
                errors.required(&path, "one of fieldRef and resourceFieldRef");
                None
            }
            (Some(field), None) => env::metadata_ref(field, &path.child("fieldRef"), errors),
            (None, Some(resource)) => {
                let path = path.child("resourceFieldRef");
                if resource
                    .container_name
                    .as_deref()
                    .unwrap_or_default()
                    .is_empty()
                {
                    errors.required(&path.child("containerName"), "");
                }
                env::resource_ref(resource, containers, &path, errors)
                    .map(DownwardContent::Resource)
            }
        };
        let path_in_volume = file(&item.path, &path.child("path"), errors);
        let mode = mode(item.mode, &path.child("mode"), errors);
        if let Some(content) = content {
            files.push(DownwardFile {
                path: path_in_volume,
                content,
                mode,
            });
        }
    }
    files
}

/// A path below the volume. What begins with two dots belongs to the writer of the volume.
pub(super) fn file(value: &str, path: &Path<'_>, errors: &mut Errors) -> Box<str> {
    if value.is_empty() {
        errors.required(path, "");
    }
    below(path, value, errors);
    if value.starts_with("..") && !value.starts_with("../") && value != ".." {
        errors.invalid(path, value, "must not start with '..'");
    }
    value.into()
}

pub(super) fn default_mode(value: Option<i32>, path: &Path<'_>, errors: &mut Errors) -> u32 {
    let path = path.child("defaultMode");
    mode(Some(value.unwrap_or(DEFAULT_MODE)), &path, errors).unwrap_or_default()
}

fn mode(value: Option<i32>, path: &Path<'_>, errors: &mut Errors) -> Option<u32> {
    let value = value?;
    if !(0..=MAX_MODE).contains(&value) {
        let detail = "must be from 0 to 0777 (octal), which is 511";
        errors.invalid(path, value, detail);
    }
    u32::try_from(value).ok()
}
