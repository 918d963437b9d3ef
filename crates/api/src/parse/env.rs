//! Environment variables, and the downward API that volumes share with them.

use std::collections::HashSet;

use k8s_openapi::api::core::v1 as k8s;

use super::{
    Errors, Path, names,
    values::{below, quantity, room, text},
};
use crate::{
    container::{
        EnvFrom, EnvValue, EnvVar, FieldPath, FileKeyRef, KeyRef, ObjectKind, ResourceField,
        ResourceName,
    },
    resource_name::is_hugepages,
    volume::DownwardContent,
};

/// What `fieldRef.fieldPath` may be, beside labels and annotations.
const FIELD_PATHS: [(&str, FieldPath); 9] = [
    ("metadata.name", FieldPath::Name),
    ("metadata.namespace", FieldPath::Namespace),
    ("metadata.uid", FieldPath::Uid),
    ("spec.nodeName", FieldPath::NodeName),
    ("spec.serviceAccountName", FieldPath::ServiceAccountName),
    ("status.hostIP", FieldPath::HostIp),
    ("status.hostIPs", FieldPath::HostIps),
    ("status.podIP", FieldPath::PodIp),
    ("status.podIPs", FieldPath::PodIps),
];
const SUBSCRIPTED: [&str; 2] = ["metadata.annotations['KEY']", "metadata.labels['KEY']"];

const RESOURCES: [(&str, ResourceName); 4] = [
    ("limits.cpu", ResourceName::LimitsCpu),
    ("limits.memory", ResourceName::LimitsMemory),
    ("requests.cpu", ResourceName::RequestsCpu),
    ("requests.memory", ResourceName::RequestsMemory),
];

/// Divisors that the API server knows: a thousandth or one core, and powers of 1000 and 1024.
const CPU_DIVISORS: [&str; 2] = ["1m", "1"];
const MEMORY_DIVISORS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// `envFrom`; manifests with it are refused before.
pub(super) fn from_objects(list: Option<&Vec<k8s::EnvFromSource>>) -> Vec<EnvFrom> {
    let list = list.into_iter().flatten();
    list.filter_map(|source| {
        let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
            (Some(object), _) => (ObjectKind::ConfigMap, &object.name, object.optional),
            (None, Some(object)) => (ObjectKind::Secret, &object.name, object.optional),
            (None, None) => return None,
        };
        Some(EnvFrom {
            prefix: text(source.prefix.as_ref()).unwrap_or_default(),
            kind,
            name: name.as_str().into(),
            optional: optional.unwrap_or(false),
        })
    })
    .collect()
}

pub(super) fn convert(
    env: Option<&Vec<k8s::EnvVar>>,
    containers: &HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<EnvVar> {
    let mut converted = room(env.map(Vec::as_slice));
    for (index, variable) in env.into_iter().flatten().enumerate() {
        let path = path.index(index);
        if variable.name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            names::env_name(&path.child("name"), &variable.name, errors);
        }
        let literal = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            None => Some(EnvValue::Literal(literal.into())),
            Some(source) => {
                let path = path.child("valueFrom");
                if !literal.is_empty() {
                    errors.invalid(&path, literal, "must not stand beside value");
                }
                value_from(source, containers, &path, errors)
            }
        };
        if let Some(value) = value {
            converted.push(EnvVar {
                name: variable.name.as_str().into(),
                value,
            });
        }
    }
    converted
}

fn value_from(
    source: &k8s::EnvVarSource,
    containers: &HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<EnvValue> {
    let sources = [
        source.config_map_key_ref.is_some(),
        source.secret_key_ref.is_some(),
        source.file_key_ref.is_some(),
        source.field_ref.is_some(),
        source.resource_field_ref.is_some(),
    ];
    let given = sources.into_iter().filter(|&given| given).count();
    match given {
        // One that is newer than this agent: what the variable would be can't be known.
        0 => errors.required(path, "one of fieldRef, fileKeyRef and resourceFieldRef"),
        1 => {}
        _ => errors.invalid(path, given, "must have one source only"),
    }
    if let Some(key) = &source.config_map_key_ref {
        return Some(EnvValue::ConfigMapKey(key_ref(
            &key.name,
            &key.key,
            key.optional,
        )));
    }
    if let Some(key) = &source.secret_key_ref {
        return Some(EnvValue::SecretKey(key_ref(
            &key.name,
            &key.key,
            key.optional,
        )));
    }
    if let Some(key) = &source.file_key_ref {
        return Some(EnvValue::FileKey(file_key(
            key,
            &path.child("fileKeyRef"),
            errors,
        )));
    }
    let field = source
        .field_ref
        .as_ref()
        .and_then(|field| field_ref(field, &path.child("fieldRef"), errors).map(EnvValue::Field));
    let resource = source.resource_field_ref.as_ref().and_then(|resource| {
        resource_ref(
            resource,
            containers,
            &path.child("resourceFieldRef"),
            errors,
        )
        .map(EnvValue::Resource)
    });
    field.or(resource)
}

fn file_key(key: &k8s::FileKeySelector, path: &Path<'_>, errors: &mut Errors) -> FileKeyRef {
    let required = [
        ("key", &key.key),
        ("path", &key.path),
        ("volumeName", &key.volume_name),
    ];
    for (name, value) in required {
        if value.is_empty() {
            errors.required(&path.child(name), "");
        }
    }
    names::env_name(&path.child("key"), &key.key, errors);
    below(&path.child("path"), &key.path, errors);
    FileKeyRef {
        volume: key.volume_name.as_str().into(),
        path: key.path.as_str().into(),
        key: key.key.as_str().into(),
        optional: key.optional.unwrap_or(false),
    }
}

fn key_ref(object: &str, key: &str, optional: Option<bool>) -> KeyRef {
    KeyRef {
        object: object.into(),
        key: key.into(),
        optional: optional.unwrap_or(false),
    }
}

fn field_ref(
    field: &k8s::ObjectFieldSelector,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<FieldPath> {
    let path = &field_path(field, path, errors)?;
    let requested = field.field_path.as_str();
    if let Some((_, known)) = FIELD_PATHS.iter().find(|(name, _)| *name == requested) {
        return Some(known.clone());
    }
    let found = subscripted(requested, path, errors);
    if found.is_none() {
        let known = FIELD_PATHS.iter().map(|(name, _)| *name);
        unsupported(requested, known.chain(SUBSCRIPTED).collect(), path, errors);
    }
    found
}

/// As an item of a volume may use it: fields of the metadata, also all labels or annotations.
pub(super) fn metadata_ref(
    field: &k8s::ObjectFieldSelector,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<DownwardContent> {
    let path = &field_path(field, path, errors)?;
    let requested = field.field_path.as_str();
    let whole = [
        ("metadata.annotations", DownwardContent::Annotations),
        ("metadata.labels", DownwardContent::Labels),
    ];
    if let Some((_, content)) = whole.iter().find(|(name, _)| *name == requested) {
        return Some(content.clone());
    }
    let metadata = || {
        let all = FIELD_PATHS.iter();
        all.filter(|(name, _)| name.starts_with("metadata."))
    };
    if let Some((_, known)) = metadata().find(|(name, _)| *name == requested) {
        return Some(DownwardContent::Field(known.clone()));
    }
    let found = subscripted(requested, path, errors).map(DownwardContent::Field);
    if found.is_none() {
        let known = metadata().map(|(name, _)| *name);
        let known = known.chain(whole.iter().map(|(name, _)| *name));
        unsupported(requested, known.chain(SUBSCRIPTED).collect(), path, errors);
    }
    found
}

/// The path of `fieldPath`, where it says something.
fn field_path<'a>(
    field: &k8s::ObjectFieldSelector,
    path: &'a Path<'a>,
    errors: &mut Errors,
) -> Option<Path<'a>> {
    let version = field.api_version.as_deref().unwrap_or_default();
    if version != "v1" {
        errors.unsupported(&path.child("apiVersion"), version, &["v1"]);
    }
    let path = path.child("fieldPath");
    if field.field_path.is_empty() {
        errors.required(&path, "");
        return None;
    }
    Some(path)
}

fn subscripted(requested: &str, path: &Path<'_>, errors: &mut Errors) -> Option<FieldPath> {
    let subscript = |map: &str| {
        requested
            .strip_prefix(map)?
            .strip_prefix("['")?
            .strip_suffix("']")
    };
    if let Some(key) = subscript("metadata.labels") {
        names::qualified(path, key, errors);
        return Some(FieldPath::Label(key.into()));
    }
    let key = subscript("metadata.annotations")?;
    names::qualified(path, &key.to_lowercase(), errors);
    Some(FieldPath::Annotation(key.into()))
}

fn unsupported(requested: &str, mut known: Vec<&str>, path: &Path<'_>, errors: &mut Errors) {
    known.sort_unstable();
    errors.unsupported(path, requested, &known);
}

pub(super) fn resource_ref(
    field: &k8s::ResourceFieldSelector,
    containers: &HashSet<String>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Option<ResourceField> {
    let container = text(field.container_name.as_ref());
    if let Some(name) = &container
        && !containers.contains(&**name)
    {
        let detail = "the pod has no container of this name";
        errors.not_found(&path.child("containerName"), name, detail);
    }
    let resource_path = path.child("resource");
    let requested = field.resource.as_str();
    let Some((_, resource)) = RESOURCES.iter().find(|(name, _)| *name == requested) else {
        let rest = requested
            .strip_prefix("limits.")
            .or_else(|| requested.strip_prefix("requests."));
        match rest {
            _ if requested.is_empty() => errors.required(&resource_path, ""),
            Some("ephemeral-storage") => {
                errors.not_yet(
                    &resource_path,
                    "ephemeral storage comes with a later release",
                );
            }
            Some(huge) if is_hugepages(huge) => {
                errors.not_yet(
                    &resource_path,
                    "huge pages cannot be read by a container yet",
                );
            }
            _ => errors.unsupported(&resource_path, requested, &RESOURCES.map(|(name, _)| name)),
        }
        return None;
    };
    let divisors: &[&str] = match resource {
        ResourceName::LimitsCpu | ResourceName::RequestsCpu => &CPU_DIVISORS,
        ResourceName::LimitsMemory | ResourceName::RequestsMemory => &MEMORY_DIVISORS,
    };
    let path = path.child("divisor");
    let written = field
        .divisor
        .as_ref()
        .map_or("0", |divisor| divisor.0.as_str());
    let divisor = match quantity(&path, written, errors).milli() {
        0 => 1000,
        milli => milli,
    };
    let is_known = |known: &&str| quantity(&path, known, &mut Errors::default()).milli() == divisor;
    if divisor != 1000 && !divisors.iter().any(is_known) {
        errors.unsupported(&path, written, divisors);
    }
    Some(ResourceField {
        container,
        resource: *resource,
        divisor_milli: divisor,
    })
}
