//! What a pod asks of the node it runs on.

use k8s_openapi::api::core::v1 as k8s;

use super::{Errors, Path, names, values::text};

const SYSTEM_NODE_CRITICAL: (&str, i32) = ("system-node-critical", 2_000_001_000);
const SYSTEM_CLUSTER_CRITICAL: (&str, i32) = ("system-cluster-critical", 2_000_000_000);

/// Refuses a pod that was written for another kind of node.
pub(super) fn check(spec: &k8s::PodSpec, node_name: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(os) = &spec.os
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
        errors.not_yet(
            &path.child("hostUsers"),
            "user namespaces come with a later release",
        );
    }
    node_selector(spec, node_name, &path.child("nodeSelector"), errors);
    tolerations(spec, &path.child("tolerations"), errors);
}

fn node_selector(spec: &k8s::PodSpec, node_name: &str, path: &Path<'_>, errors: &mut Errors) {
    for (key, wanted) in spec.node_selector.iter().flatten() {
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
        if wanted != own {
            errors.invalid(&path, wanted, format_args!("this node has {own:?}"));
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

fn tolerations(spec: &k8s::PodSpec, path: &Path<'_>, errors: &mut Errors) {
    for (index, toleration) in spec.tolerations.iter().flatten().enumerate() {
        let path = path.index(index);
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
        if !matches!(effect, "" | "NoExecute" | "NoSchedule" | "PreferNoSchedule") {
            let known = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
            errors.unsupported(&path.child("effect"), effect, &known);
        }
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
        (None, None) => {
            errors.forbidden(
                &path.child("priorityClassName"),
                "static pods can't use objects of the API server (priority classes); use system-node-critical or system-cluster-critical, or write priority",
            );
            0
        }
    };
    (priority, Some(class))
}
