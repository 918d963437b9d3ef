//! Discovery: versions, groups and resources.

use rubelet_http_core::resource::Resource;
use serde_json::{Value, json};

/// `major` of the supported Kubernetes API.
pub const KUBERNETES_MAJOR: &str = "1";

/// `minor` of the supported Kubernetes API.
pub const KUBERNETES_MINOR: &str = "36";

/// `gitVersion`: the Kubernetes API's version followed by this program's own.
#[must_use]
pub fn git_version() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!("v{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}.0+rubelet.{own}")
}

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": KUBERNETES_MAJOR,
        "minor": KUBERNETES_MINOR,
        "gitVersion": git_version(),
        "platform": platform(),
    })
}

/// Operating system and architecture in Go's words, such as `linux/amd64`.
#[must_use]
pub fn platform() -> String {
    use std::env::consts::{ARCH, OS};
    format!("{OS}/{}", go_arch(ARCH))
}

/// Go's names of architectures, which Kubernetes uses.
fn go_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    }
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
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group()] })
}

/// `/apis/node.rubelet.dev`.
pub(crate) fn node_group() -> Value {
    let mut group = group();
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    group
}

fn group() -> Value {
    let version = json!({
        "groupVersion": Resource::Manifests.api_version(),
        "version": Resource::NODE_VERSION,
    });
    json!({
        "name": Resource::NODE_GROUP,
        "versions": [version.clone()],
        "preferredVersion": version,
    })
}

/// A subresource of a pod, or an action on one.
fn of_pod(name: &str, kind: &str, verbs: &[&str]) -> Value {
    json!({
        "name": format!("pods/{name}"),
        "singularName": "",
        "namespaced": true,
        "kind": kind,
        "verbs": verbs,
    })
}

/// `/api/v1` or `/apis/node.rubelet.dev/v1alpha1`: the resources of one group and version.
pub(crate) fn resources(group: &str) -> Value {
    let mut group_version = "v1";
    let mut resources = Vec::new();
    for resource in Resource::ALL
        .into_iter()
        .filter(|resource| resource.group() == group)
    {
        group_version = resource.api_version();
        // What `kubectl get all` shows.
        let categories: &[&str] = if resource == Resource::Pods {
            &["all"]
        } else {
            &[]
        };
        let verbs: &[&str] = if resource == Resource::Pods {
            &["delete", "get", "list", "watch"]
        } else {
            &["get", "list", "watch"]
        };
        resources.push(json!({
            "name": resource.plural(),
            "singularName": resource.singular(),
            "namespaced": resource.namespaced(),
            "kind": resource.kind(),
            "verbs": verbs,
            "shortNames": [resource.short_name()],
            "categories": categories,
        }));
        if resource == Resource::Pods {
            let write: &[&str] = &["get", "patch", "update"];
            let session: &[&str] = &["create", "get"];
            resources.push(of_pod("attach", "PodAttachOptions", session));
            resources.push(of_pod("ephemeralcontainers", "Pod", write));
            resources.push(of_pod("exec", "PodExecOptions", session));
            resources.push(of_pod("log", "Pod", &["get"]));
            resources.push(of_pod("portforward", "PodPortForwardOptions", session));
            resources.push(of_pod("status", "Pod", write));
        }
        if resource == Resource::Manifests {
            resources.push(of_pod("net", "PodNetworkProbe", &["create"]));
            resources.push(of_pod("restart", "PodRestart", &["create"]));
            resources.push(of_pod("why", "PodExplanation", &["get"]));
        }
    }
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    })
}
