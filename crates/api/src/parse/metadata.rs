//! The identity of a pod, and the rewriting of static pods.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use rubelet_base::{PodName, PodUid};

use super::{Errors, ParseContext, Path, names};
use crate::{
    annotations::{CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, CONFIG_SOURCE},
    hash,
    pod::{PodSource, StringMap},
};

/// All keys and values of the annotations together.
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;
/// Longer ones would not fit into the names of directories and cgroups.
const MAX_UID: usize = 128;
const UID: &str = "use up to 128 letters, digits and '-'";

pub(super) struct Identity {
    pub(super) uid: PodUid,
    pub(super) name: PodName,
}

/// Validates the metadata and, unless the pod is the API server's, rewrites it: the node's name
/// behind the pod's, namespace, UID and the annotations of static pods; what only an API server
/// could mean is dropped.
pub(super) fn identity(
    metadata: &mut ObjectMeta,
    context: &ParseContext<'_>,
    content_hash: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Identity {
    labels(metadata.labels.as_ref(), &path.child("labels"), errors);
    annotations(
        metadata.annotations.as_ref(),
        &path.child("annotations"),
        errors,
    );
    let is_static = context.source != PodSource::Api;
    let namespace = match metadata.namespace.as_deref() {
        None | Some("") => "default".to_owned(),
        Some(namespace) => {
            names::label(&path.child("namespace"), namespace, errors);
            namespace.to_owned()
        }
    };
    let written = metadata.name.take().unwrap_or_default();
    let name_path = path.child("name");
    let name = if is_static {
        full_name(&written, context.node_name)
    } else {
        written.clone()
    };
    if written.is_empty() {
        errors.required(
            &name_path,
            "a pod of a manifest needs a name; generateName is not enough",
        );
    } else if !names::is_subdomain(&written) {
        names::subdomain(&name_path, &written, errors);
    } else if !names::is_subdomain(&name) {
        let detail = format_args!("with the node's name behind it, {name:?} is longer than 253");
        errors.invalid(&name_path, &written, detail);
    }
    let uid = uid(
        metadata,
        context,
        &namespace,
        &written,
        &path.child("uid"),
        errors,
    );
    if is_static {
        rewrite(metadata, context, content_hash);
    }
    let identity = Identity {
        uid,
        name: PodName::new(&namespace, &name),
    };
    metadata.uid = Some(identity.uid.to_string());
    metadata.namespace = Some(namespace);
    metadata.name = Some(name);
    identity
}

/// The identity of a pod of the API server.
pub(super) fn api_identity(
    metadata: &mut ObjectMeta,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Identity {
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let name = metadata.name.clone().unwrap_or_default();
    let uid = metadata.uid.clone().unwrap_or_default();
    if !names::is_label(&namespace) {
        errors.invalid(&path.child("namespace"), &namespace, names::LABEL);
    }
    if !names::is_subdomain(&name) {
        errors.invalid(&path.child("name"), &name, names::SUBDOMAIN);
    }
    if !is_uid(&uid) {
        errors.invalid(&path.child("uid"), &uid, UID);
    }
    Identity {
        uid: uid.into(),
        name: PodName::new(&namespace, &name),
    }
}

pub(super) fn is_uid(uid: &str) -> bool {
    uid.len() <= MAX_UID
        && uid.starts_with(|c: char| c.is_ascii_alphanumeric())
        && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn full_name(written: &str, node_name: &str) -> String {
    format!("{written}-{}", node_name.to_lowercase())
}

fn uid(
    metadata: &ObjectMeta,
    context: &ParseContext<'_>,
    namespace: &str,
    name: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) -> PodUid {
    if let Some(uid) = metadata.uid.as_deref().filter(|uid| !uid.is_empty()) {
        if !is_uid(uid) {
            // It becomes the name of directories and cgroups.
            errors.invalid(path, uid, format_args!("{UID}, or leave it out"));
        }
        return uid.into();
    }
    let source = context.source.as_str();
    context
        .adopted_uid
        .clone()
        .unwrap_or_else(|| hash::static_uid(context.node_name, source, namespace, name).into())
}

fn rewrite(metadata: &mut ObjectMeta, context: &ParseContext<'_>, content_hash: &str) {
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(CONFIG_HASH.to_owned(), content_hash.to_owned());
    annotations.insert(CONFIG_SOURCE.to_owned(), context.source.as_str().to_owned());
    annotations.insert(CONFIG_SEEN.to_owned(), context.now.to_string());
    let ObjectMeta {
        annotations,
        labels,
        ..
    } = std::mem::take(metadata);
    metadata.annotations = annotations;
    metadata.labels = labels;
    metadata.creation_timestamp = Some(Time(context.now));
}

fn labels(labels: Option<&BTreeMap<String, String>>, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in labels.into_iter().flatten() {
        let path = path.key(key);
        names::qualified(&path, key, errors);
        names::label_value(&path, value, errors);
    }
}

fn annotations(map: Option<&BTreeMap<String, String>>, path: &Path<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in map.into_iter().flatten() {
        names::qualified(&path.key(key), &key.to_lowercase(), errors);
        size += key.len() + value.len();
    }
    if size > MAX_ANNOTATIONS_BYTES {
        errors.invalid(
            path,
            size,
            format_args!("all annotations together must not exceed {MAX_ANNOTATIONS_BYTES} bytes"),
        );
    }
    if map.is_some_and(|map| map.contains_key(CONFIG_MIRROR)) {
        let detail = "it marks the API server's copy of a static pod; remove it";
        errors.forbidden(&path.key(CONFIG_MIRROR), detail);
    }
}

/// Labels or annotations in their compact form.
pub(super) fn strings(map: Option<BTreeMap<String, String>>) -> StringMap {
    map.into_iter()
        .flatten()
        .map(|(key, value)| (key.into(), value.into()))
        .collect()
}
