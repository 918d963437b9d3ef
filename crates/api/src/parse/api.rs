//! Pods of the API server. It defaulted and validated them, and it may be newer than this agent: a
//! field that is merely unknown refuses nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use rubelet_yaml::{DecodedValue, SkippedField, decode_value};
use serde_json::Value;

use super::{
    Errors, FieldError, FieldErrorKind, ParseContext, Path, defaults, metadata,
    spec as specification,
};
use crate::{
    fields,
    pod::{Deletion, Pod, PodSource},
};

/// A pod of the API server, and what this agent does not make of it.
#[derive(Debug)]
pub struct ParsedApiPod {
    /// The pod. Where `unsupported` is not empty it is not complete and must not run.
    pub pod: Pod,
    /// Fields that this agent does not know, such as `spec.containers[].novelty`: each once, in the
    /// form of the support matrix, sorted. The pod runs without them.
    pub unknown_fields: Vec<String>,
    /// Fields of the metadata that could not be read, and change nothing in what runs. The pod runs
    /// without them.
    pub left_out: Vec<SkippedField>,
    /// Fields that this agent knows and does not support. A pod with any is rejected.
    pub unsupported: Vec<FieldError>,
}

/// Parses a v1 Pod as the API server has it. Its status is ignored. The pod's JSON keeps all fields,
/// also unknown ones, but for `status` and `metadata.managedFields`.
///
/// # Errors
/// It is no v1 Pod, it has no name, namespace or UID that can be used, or a field that decides what
/// runs has the wrong type. Null, absent and empty are one.
pub fn api_pod(mut value: Value, node_name: &str) -> Result<ParsedApiPod, Vec<FieldError>> {
    trim(&mut value);
    let DecodedValue {
        value: mut pod,
        unknown,
        left_out,
    } = decode_value::<k8s::Pod>(&value, is_needed).map_err(|error| {
        vec![FieldError {
            field: error.field,
            kind: FieldErrorKind::Invalid,
            message: error.problem,
            position: None,
        }]
    })?;
    let unknown: BTreeSet<String> = unknown.iter().map(|field| without_indices(field)).collect();

    let context = ParseContext {
        node_name,
        source: PodSource::Api,
        origin: "",
        adopted_uid: None,
        now: Timestamp::UNIX_EPOCH,
    };
    let root = Path::root();
    let mut errors = Errors::relaxed();
    let identity = metadata::api_identity(&mut pod.metadata, &root.child("metadata"), &mut errors);
    if !errors.is_empty() {
        return Err(errors.into_list(|_| None));
    }
    fields::check(&value, PodSource::Api, &mut errors);
    let spec = pod.spec.get_or_insert_default();
    defaults::apply(spec, PodSource::Api);
    let converted = specification::convert(
        spec,
        &pod.metadata,
        &context,
        &root.child("spec"),
        &mut errors,
    );
    let metadata::Identity { uid, name } = identity;
    let metadata = pod.metadata;
    Ok(ParsedApiPod {
        pod: Pod {
            uid,
            name,
            generation: metadata.generation.unwrap_or(0),
            created: metadata.creation_timestamp.map(|time| time.0),
            deletion: metadata.deletion_timestamp.map(|time| Deletion {
                at: time.0,
                grace: converted_grace(metadata.deletion_grace_period_seconds),
            }),
            labels: metadata::strings(metadata.labels),
            annotations: metadata::strings(metadata.annotations),
            source: PodSource::Api,
            spec: converted,
            sandbox_definition: None,
            resize_infeasible: None,
            json: value.to_string().into(),
        },
        unknown_fields: unknown.into_iter().collect(),
        left_out,
        unsupported: errors.into_list(|_| None),
    })
}

/// Whether a pod must not run without this field where it can't be read: a container without a
/// security context of the wrong type would have fewer restrictions than somebody asked for, and so
/// would one without the annotations that name its profiles.
fn is_needed(field: &str) -> bool {
    let Some(below) = field.strip_prefix("metadata") else {
        return true;
    };
    let about_the_cluster = [
        ".creationTimestamp",
        ".finalizers",
        ".generateName",
        ".generation",
        ".managedFields",
        ".ownerReferences",
        ".resourceVersion",
        ".selfLink",
    ];
    !about_the_cluster
        .iter()
        .any(|harmless| below.starts_with(harmless))
}

/// The API server always writes it beside the time; nothing counts as no time at all.
fn converted_grace(seconds: Option<i64>) -> std::time::Duration {
    std::time::Duration::from_secs(seconds.unwrap_or(0).max(0).unsigned_abs())
}

/// Takes out what stands elsewhere or means nothing to a node, and adds what items of a list lack.
fn trim(value: &mut Value) {
    let Some(fields) = value.as_object_mut() else {
        return;
    };
    fields.remove("status");
    for (name, text) in [("apiVersion", "v1"), ("kind", "Pod")] {
        let field = fields.entry(name).or_insert(Value::Null);
        if field.is_null() {
            *field = text.into();
        }
    }
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// `a[3].b` becomes `a[].b`.
fn without_indices(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut inside = false;
    for letter in field.chars() {
        match letter {
            '[' => {
                inside = true;
                text.push_str("[]");
            }
            ']' => inside = false,
            _ if inside => {}
            other => text.push(other),
        }
    }
    text
}
