//! Ephemeral containers, which are added to a pod that runs.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1 as k8s;
use rubelet_yaml::{DecodeError, Decoded, Document, documents};
use serde_json::Value;

use super::{
    Errors, FieldError, FieldErrorKind, Path,
    container::{self, Role},
    defaults,
    scope::Scope,
};
use crate::{
    container::{Container, EphemeralContainer, SubPath},
    fields,
    manifest::quantities,
    pod::{Pod, PodSource},
};

const NOT_HERE: &str = "an ephemeral container cannot have it";

/// Parses a v1 EphemeralContainer, written as JSON or YAML, that is to run in `pod` beside what is
/// already there. Gives it and its defaulted JSON, the two parts that [`Pod::with_ephemeral`] needs.
///
/// # Errors
/// What is wrong with the text, its types and unknown fields; else all mistakes. Fields are those
/// that the container would have in the pod, such as `spec.ephemeralContainers[0].image`.
pub fn ephemeral_container(
    text: &str,
    pod: &Pod,
) -> Result<(EphemeralContainer, Value), Vec<FieldError>> {
    let root = Path::root();
    let spec = root.child("spec");
    let list = spec.child("ephemeralContainers");
    let path = list.index(pod.spec.ephemeral_containers.len());

    let mut written = mapping(text, &path)?.value().clone();
    quantities::quote(&mut written);
    let mut value = decode(&written, &path)?;
    let mut errors = Errors::default();
    for (name, given) in take_forbidden(&mut value) {
        if given {
            errors.forbidden(&path.child(name), NOT_HERE);
        }
        if let Some(fields) = written.as_object_mut() {
            fields.remove(name);
        }
    }
    fields::check_container(&written, pod.source, &path, &mut errors);
    let target = value.target_container_name.take();
    let target = target.filter(|name| !name.is_empty());
    let mut container = as_container(&value);
    defaults::container(&mut container, pod.spec.host_network);
    container.resources.get_or_insert_default();

    check_names(&container.name, target.as_deref(), pod, &path, &mut errors);
    let converted = convert(&container, pod, &path, &mut errors);
    if !errors.is_empty() {
        return Err(errors.into_list(|_| None));
    }
    let mut json = serde_json::to_value(&container).expect("a container has only texts for keys");
    if let Some(target) = &target {
        json["targetContainerName"] = target.as_str().into();
    }
    let converted = EphemeralContainer {
        container: converted,
        target: target.map(String::into_boxed_str),
    };
    Ok((converted, json))
}

/// The ephemeral containers in the specification of a pod of the API server, which has checked what
/// they may have.
pub(super) fn of_spec(
    list: &[k8s::EphemeralContainer],
    host_network: bool,
    scope: &Scope<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<EphemeralContainer> {
    let list = list.iter().enumerate();
    list.map(|(index, one)| {
        let mut value = one.clone();
        let target = value.target_container_name.take();
        let mut container = as_container(&value);
        defaults::container(&mut container, host_network);
        container.resources.get_or_insert_default();
        let path = path.index(index);
        EphemeralContainer {
            container: container::convert_one(&container, Role::Ephemeral, scope, &path, errors),
            target: target
                .filter(|name| !name.is_empty())
                .map(String::into_boxed_str),
        }
    })
    .collect()
}

fn as_container(value: &k8s::EphemeralContainer) -> k8s::Container {
    serde_json::to_value(value)
        .and_then(serde_json::from_value)
        .expect("but for the target, both kinds have the same fields")
}

/// The only document of the text.
fn mapping(text: &str, path: &Path<'_>) -> Result<Document, Vec<FieldError>> {
    let mut documents = documents(text).map_err(|error| {
        let position = error.position;
        let error = field_error(path, error);
        vec![FieldError { position, ..error }]
    })?;
    match documents.pop() {
        Some(only) if documents.is_empty() && only.value().is_object() => Ok(only),
        _ => Err(vec![FieldError {
            field: path.to_string(),
            kind: FieldErrorKind::Invalid,
            message: "expected a mapping (EphemeralContainer)".to_owned(),
            position: None,
        }]),
    }
}

fn decode(written: &Value, path: &Path<'_>) -> Result<k8s::EphemeralContainer, Vec<FieldError>> {
    let document = mapping(&written.to_string(), path)?;
    let Decoded { value, unknown } = document
        .decode()
        .map_err(|error| vec![field_error(path, *error)])?;
    if unknown.is_empty() {
        return Ok(value);
    }
    let unknown = unknown.into_iter();
    Err(unknown.map(|error| field_error(path, error)).collect())
}

fn field_error(path: &Path<'_>, error: DecodeError) -> FieldError {
    let field = match error.field {
        Some(field) if field.starts_with('[') => format!("{path}{field}"),
        Some(field) => format!("{path}.{field}"),
        None => path.to_string(),
    };
    FieldError {
        field,
        kind: FieldErrorKind::Invalid,
        message: error.message,
        position: None,
    }
}

/// Removes what must not be set, and reports what was. Source of the rule: the list
/// `allowedEphemeralContainerFields` of the API server's validation, which names the others.
fn take_forbidden(container: &mut k8s::EphemeralContainer) -> [(&'static str, bool); 9] {
    fn any<T>(list: Option<Vec<T>>) -> bool {
        list.is_some_and(|list| !list.is_empty())
    }
    let asks = |resources: k8s::ResourceRequirements| {
        let amounts = [resources.limits, resources.requests];
        any(resources.claims) || amounts.into_iter().flatten().any(|list| !list.is_empty())
    };
    [
        ("lifecycle", container.lifecycle.take().is_some()),
        ("livenessProbe", container.liveness_probe.take().is_some()),
        ("ports", any(container.ports.take())),
        ("readinessProbe", container.readiness_probe.take().is_some()),
        ("resizePolicy", any(container.resize_policy.take())),
        ("resources", container.resources.take().is_some_and(asks)),
        (
            "restartPolicy",
            container
                .restart_policy
                .take()
                .is_some_and(|policy| !policy.is_empty()),
        ),
        (
            "restartPolicyRules",
            any(container.restart_policy_rules.take()),
        ),
        ("startupProbe", container.startup_probe.take().is_some()),
    ]
}

fn check_names(name: &str, target: Option<&str>, pod: &Pod, path: &Path<'_>, errors: &mut Errors) {
    if pod.spec.container(name).is_some() {
        errors.duplicate(&path.child("name"), name);
    }
    let targets = || pod.spec.all_containers().map(|one| &*one.name);
    if let Some(target) = target
        && !targets().any(|name| name == target)
    {
        let known: Vec<String> = targets().map(|name| format!("{name:?}")).collect();
        let detail = format!("the pod has the containers {}", known.join(", "));
        errors.not_found(&path.child("targetContainerName"), target, &detail);
    }
}

fn convert(
    container: &k8s::Container,
    pod: &Pod,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Container {
    let volumes = pod.spec.volumes.iter();
    let others = pod.spec.all_containers();
    let mut containers: HashSet<String> = others.map(|one| one.name.to_string()).collect();
    containers.insert(container.name.clone());
    let annotations: BTreeMap<String, String> = pod
        .annotations
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect();
    let scope = Scope {
        volumes: &volumes.map(|volume| volume.name.to_string()).collect(),
        containers: &containers,
        annotations: &annotations,
        grace: None,
        strict: pod.source != PodSource::Api,
        own_users: !pod.spec.host_users,
    };
    let converted = container::convert_one(container, Role::Ephemeral, &scope, path, errors);
    let mounts = path.child("volumeMounts");
    for (index, mount) in converted.mounts.iter().enumerate() {
        let path = mounts.index(index);
        match mount.sub_path {
            SubPath::Whole => {}
            SubPath::Path(_) => errors.forbidden(&path.child("subPath"), NOT_HERE),
            SubPath::Expression(_) => errors.forbidden(&path.child("subPathExpr"), NOT_HERE),
        }
    }
    converted
}
