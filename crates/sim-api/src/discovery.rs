//! Discovery of groups, versions and resources.

use serde_json::{Value, json};

use crate::{KINDS, Kind, StatusError};

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": "v1.36.2",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": "go1.26.0",
        "compiler": "gc",
        "platform": "linux/amd64",
    })
}

/// `/api`.
pub(crate) fn core_versions() -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "" }],
    })
}

/// `/apis`.
pub(crate) fn groups() -> Value {
    let mut names: Vec<&Kind> = Vec::new();
    for kind in KINDS.iter().filter(|kind| !kind.group.is_empty()) {
        if names.iter().all(|known| known.group != kind.group) {
            names.push(kind);
        }
    }
    let groups: Vec<Value> = names.into_iter().map(group).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn group(kind: &Kind) -> Value {
    let version = json!({ "groupVersion": kind.api_version(), "version": kind.version });
    json!({ "name": kind.group, "versions": [version], "preferredVersion": version })
}

/// `/apis/GROUP`.
pub(crate) fn one_group(name: &str) -> Result<Value, StatusError> {
    let kind = KINDS.iter().find(|kind| kind.group == name);
    let mut group = group(kind.ok_or_else(StatusError::unknown_path)?);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    Ok(group)
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn resources(group: &str, version: &str) -> Result<Value, StatusError> {
    let kinds = KINDS.iter();
    let kinds: Vec<&Kind> = kinds
        .filter(|kind| kind.group == group && kind.version == version)
        .collect();
    let first = kinds.first().ok_or_else(StatusError::unknown_path)?;
    let group_version = first.api_version();
    let mut resources = Vec::new();
    for kind in kinds {
        let categories: &[&str] = match kind.plural {
            "pods" | "services" => &["all"],
            _ => &[],
        };
        resources.push(json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": kind.verbs(),
            "shortNames": kind.short_names,
            "categories": categories,
        }));
        for (name, sent) in kind.subresources {
            resources.push(subresource(kind, name, sent));
        }
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn subresource(kind: &Kind, name: &str, sent: &str) -> Value {
    let verbs: &[&str] = match name {
        "binding" | "eviction" | "token" => &["create"],
        "attach" | "exec" | "portforward" => &["create", "get"],
        "log" | "proxy" => &["get"],
        "finalize" => &["update"],
        _ => &["get", "patch", "update"],
    };
    let mut resource = json!({
        "name": format!("{}/{name}", kind.plural),
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": sent,
        "verbs": verbs,
    });
    let of_other_group = match name {
        "eviction" => Some("policy"),
        "token" => Some("authentication.k8s.io"),
        _ => None,
    };
    if let Some(group) = of_other_group {
        resource["group"] = group.into();
        resource["version"] = "v1".into();
    }
    resource
}
