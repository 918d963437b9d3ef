//! What a pod asks of the node it runs on.

use k8s_openapi::api::core::v1 as k8s;

use super::{Errors, ParseContext, Path, names, values::text};
use crate::{
    pod::PodSource,
    scheduling::{TaintEffect, Toleration, TolerationOperator},
};

const SYSTEM_NODE_CRITICAL: (&str, i32) = ("system-node-critical", 2_000_001_000);
const SYSTEM_CLUSTER_CRITICAL: (&str, i32) = ("system-cluster-critical", 2_000_000_000);

/// Refuses a pod that was written for another kind of node. What a pod of the API server asks of
/// its node is for admission to see.
pub(super) fn check(
    spec: &k8s::PodSpec,
    context: &ParseContext<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let is_static = context.source != PodSource::Api;
    if let Some(os) = spec.os.as_ref().filter(|_| is_static)
        && os.name != "linux"
    {
        let path = path.child("os");
        let path = path.child("name");
        match os.name.as_str() {
            "" => errors.required(&path, ""),
            other => errors.unsupported(&path, other, &["linux"]),
        }
    }
    if spec.host_users == Some(false) {
        for (field, set) in [
            ("hostNetwork", spec.host_network),
            ("hostPID", spec.host_pid),
            ("hostIPC", spec.host_ipc),
        ] {
            if set == Some(true) {
                errors.forbidden(
                    &path.child(field),
                    "may not be true beside hostUsers: false",
                );
            }
        }
    }
    if is_static {
        node_selector(spec, context.node_name, &path.child("nodeSelector"), errors);
    }
}

fn node_selector(spec: &k8s::PodSpec, node_name: &str, path: &Path<'_>, errors: &mut Errors) {
    for (key, required_value) in spec.node_selector.iter().flatten() {
        let path = path.key(key);
        let own = match key.as_str() {
            "kubernetes.io/os" | "beta.kubernetes.io/os" => "linux",
            "kubernetes.io/arch" | "beta.kubernetes.io/arch" => architecture(),
            "kubernetes.io/hostname" => node_name,
            _ => {
                let detail = "only kubernetes.io/os, kubernetes.io/arch and kubernetes.io/hostname are known without an API server";
                errors.not_yet(&path, detail);
                continue;
            }
        };
        if required_value != own {
            errors.invalid(&path, required_value, format_args!("this node has {own:?}"));
        }
    }
}

/// The name Kubernetes has for this machine's architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// Validates and converts `tolerations`. One for an effect that is newer than this agent is left out:
/// it says nothing of the effects that are known.
pub(super) fn tolerations(
    spec: &k8s::PodSpec,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<Toleration> {
    let list = spec.tolerations.iter().flatten().enumerate();
    list.filter_map(|(index, toleration)| {
        let path = path.index(index);
        // An API server that is newer may know more of them.
        if !errors.are_relaxed() {
            check_toleration(toleration, &path, errors);
        }
        let operator = match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => TolerationOperator::Equal,
            "Exists" => TolerationOperator::Exists,
            "Lt" => TolerationOperator::Lt,
            "Gt" => TolerationOperator::Gt,
            other => TolerationOperator::Other(other.into()),
        };
        let effect = match toleration.effect.as_deref().unwrap_or_default() {
            "" => None,
            known => Some(TaintEffect::from_name(known)?),
        };
        Some(Toleration {
            key: text(toleration.key.as_ref()).unwrap_or_default(),
            operator,
            value: text(toleration.value.as_ref()).unwrap_or_default(),
            effect,
            seconds: toleration.toleration_seconds,
        })
    })
    .collect()
}

fn check_toleration(toleration: &k8s::Toleration, path: &Path<'_>, errors: &mut Errors) {
    let operator = toleration.operator.as_deref().unwrap_or_default();
    if !matches!(operator, "" | "Equal" | "Exists" | "Lt" | "Gt") {
        let known = ["Equal", "Exists", "Gt", "Lt"];
        errors.unsupported(&path.child("operator"), operator, &known);
    }
    match text(toleration.key.as_ref()) {
        Some(key) => names::qualified(&path.child("key"), &key, errors),
        None if operator != "Exists" => {
            let detail = "must be Exists where no key is given";
            errors.invalid(&path.child("operator"), operator, detail);
        }
        None => {}
    }
    let effect = toleration.effect.as_deref().unwrap_or_default();
    if !effect.is_empty() && TaintEffect::from_name(effect).is_none() {
        let known = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
        errors.unsupported(&path.child("effect"), effect, &known);
    }
}

/// Priority and its class. The two classes that every cluster has are known without an API server.
pub(super) fn priority(
    spec: &k8s::PodSpec,
    path: &Path<'_>,
    errors: &mut Errors,
) -> (i32, Option<Box<str>>) {
    let Some(class) = text(spec.priority_class_name.as_ref()) else {
        return (spec.priority.unwrap_or(0), None);
    };
    let known = [SYSTEM_NODE_CRITICAL, SYSTEM_CLUSTER_CRITICAL];
    let priority = match (
        known.iter().find(|(name, _)| **name == *class),
        spec.priority,
    ) {
        (Some((_, value)), None) => *value,
        (Some((_, value)), Some(written)) => {
            if written != *value {
                let detail = format_args!("the class {class} has the priority {value}");
                errors.invalid(&path.child("priority"), written, detail);
            }
            *value
        }
        (None, Some(written)) => {
            names::subdomain(&path.child("priorityClassName"), &class, errors);
            written
        }
        // Its admission plugin would have written the value.
        (None, None) if errors.are_relaxed() => 0,
        (None, None) => {
            errors.forbidden(
                &path.child("priorityClassName"),
                "static pods cannot use objects of the API server (priority classes); use system-node-critical or system-cluster-critical, or write priority",
            );
            0
        }
    };
    (priority, Some(class))
}
