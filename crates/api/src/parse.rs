//! From a pod as it was written to the pod as Rubelet understands it: rewriting of static pods,
//! defaulting and validation as the API server would do them, and the refusal of what isn't built.
//! Pods that come from the API server have a way of their own: [`api_pod`].

mod affinity;
mod api;
mod container;
mod context;
mod defaults;
mod env;
mod ephemeral;
mod errors;
mod handler;
mod hooks;
mod metadata;
mod mounts;
mod names;
mod network;
mod objects;
mod path;
mod pod_resources;
mod ports;
mod probe;
mod requirements;
mod restart;
mod scheduling;
mod scope;
mod security;
mod spec;
mod values;
mod volumes;

pub use api::{ParsedApiPod, api_pod};
pub use context::ParseContext;
pub use ephemeral::ephemeral_container;
pub use errors::{FieldError, FieldErrorKind};
pub(crate) use {errors::Errors, hooks::from_annotation as hook_from_annotation, path::Path};

use crate::{
    container::{Container, DefinitionHash},
    fields, hash,
    manifest::RawPod,
    pod::{Pod, PodSource},
};
use serde_json::Value;

/// Whether a node may have this name: a DNS name in lower case. The names of static pods end with it.
#[must_use]
pub fn is_node_name(name: &str) -> bool {
    names::is_subdomain(name)
}

/// Whether a text is a DNS name in lower case (RFC 1123), as far as its form goes.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    names::is_subdomain(text)
}

/// Whether a pod may have this UID: it becomes the name of directories and cgroups.
#[must_use]
pub fn is_pod_uid(uid: &str) -> bool {
    metadata::is_uid(uid)
}

/// Parses a pod, and drops its Kubernetes form.
///
/// # Errors
/// All mistakes of the pod, in the order of the manifest.
pub fn parse(raw: RawPod, context: &ParseContext<'_>) -> Result<Pod, Vec<FieldError>> {
    let RawPod { mut pod, written } = raw;
    let mut errors = Errors::default();
    fields::check(written.value(), context.source, &mut errors);

    let root = Path::root();
    let content = hash::content_hash(written.value());
    let identity = metadata::identity(
        &mut pod.metadata,
        context,
        &content,
        &root.child("metadata"),
        &mut errors,
    );
    let spec = pod.spec.get_or_insert_default();
    defaults::apply(spec, context.source);
    let converted = spec::convert(
        spec,
        &pod.metadata,
        context,
        &root.child("spec"),
        &mut errors,
    );
    if !errors.is_empty() {
        return Err(errors.into_list(|field| written.position_of(field)));
    }

    let mut converted = converted;
    let mut sandbox_definition = None;
    if context.source != PodSource::Api {
        let written_spec = written.value().get("spec").unwrap_or(&Value::Null);
        sandbox_definition = Some(hash::sandbox_definition(written_spec, converted.qos));
        define(
            &mut converted.init_containers,
            written_spec.get("initContainers"),
        );
        define(&mut converted.containers, written_spec.get("containers"));
    }
    spec.node_name = Some(converted.node_name.to_string());
    spec.priority = spec
        .priority
        .or((converted.priority != 0).then_some(converted.priority));
    pod.status = None;
    let json = serde_json::to_string(&pod).expect("a pod has only texts for keys");
    let metadata::Identity { uid, name } = identity;
    Ok(Pod {
        uid,
        name,
        generation: 0,
        created: None,
        deletion: None,
        labels: metadata::strings(pod.metadata.labels),
        annotations: metadata::strings(pod.metadata.annotations),
        source: context.source,
        spec: converted,
        sandbox_definition,
        resize_infeasible: None,
        json: json.into_boxed_str(),
    })
}

fn define(containers: &mut [Container], written: Option<&Value>) {
    let written = written.and_then(Value::as_array).into_iter().flatten();
    for (container, written) in containers.iter_mut().zip(written) {
        let definition: DefinitionHash = hash::container_definition(written);
        container.definition = Some(definition);
    }
}
