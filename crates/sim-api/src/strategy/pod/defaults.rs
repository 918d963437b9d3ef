//! Defaults of a pod, as in upstream's `SetDefaults_*`.

use serde_json::{Map, Value, json};

use crate::meta;

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Sets the defaults.
pub(super) fn complete(pod: &mut Value) {
    let spec = &mut pod["spec"];
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        meta::default(spec, field, value);
    }
    let host_network = meta::flag(spec, "/hostNetwork");
    for list in CONTAINERS {
        for container in each(spec, list) {
            complete_container(container, host_network, list == "ephemeralContainers");
        }
    }
    each(spec, "volumes").for_each(complete_volume);
}

fn each<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    let entries = object.get_mut(list).and_then(Value::as_array_mut);
    entries
        .into_iter()
        .flatten()
        .filter(|entry| entry.is_object())
}

fn complete_container(container: &mut Value, host_network: bool, is_ephemeral: bool) {
    let policy = pull_policy(meta::text(container, "/image"));
    meta::default(container, "imagePullPolicy", policy);
    meta::default(container, "terminationMessagePath", "/dev/termination-log");
    meta::default(container, "terminationMessagePolicy", "File");
    meta::default(container, "resources", json!({}));
    if !is_ephemeral {
        complete_resources(&mut container["resources"]);
    }
    for port in each(container, "ports") {
        meta::default(port, "protocol", "TCP");
        if host_network {
            let number = port["containerPort"].clone();
            meta::default(port, "hostPort", number);
        }
    }
    for variable in each(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            meta::default(field, "apiVersion", "v1");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(probe).filter(|probe| probe.is_object()) {
            complete_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(get) = container.pointer_mut(&format!("/lifecycle/{hook}/httpGet")) {
            complete_get(get);
        }
    }
}

/// `Always` for a tag that can be moved to another image.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or_default();
    if last.contains('@') {
        return "IfNotPresent";
    }
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Requests default to limits.
fn complete_resources(resources: &mut Value) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = meta::fields(resources, "requests");
    for (name, limit) in limits {
        requests.entry(name).or_insert(limit);
    }
}

fn complete_probe(probe: &mut Value) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        meta::default(probe, field, value);
    }
    if let Some(get) = probe.get_mut("httpGet") {
        complete_get(get);
    }
    if let Some(grpc) = probe.get_mut("grpc") {
        meta::default(grpc, "service", "");
    }
}

fn complete_get(get: &mut Value) {
    meta::default(get, "path", "/");
    meta::default(get, "scheme", "HTTP");
}

fn complete_volume(volume: &mut Value) {
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            meta::default(source, "defaultMode", 0o644);
        }
    }
    if let Some(host) = volume
        .get_mut("hostPath")
        .filter(|source| source.is_object())
    {
        meta::default(host, "type", "");
    }
    if let Some(image) = volume.get_mut("image").filter(|source| source.is_object()) {
        let policy = pull_policy(meta::text(image, "/reference"));
        meta::default(image, "pullPolicy", policy);
    }
    if let Some(items) = volume.get_mut("downwardAPI") {
        complete_items(items);
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in each(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                meta::default(token, "expirationSeconds", 3600);
            }
            if let Some(items) = source.get_mut("downwardAPI") {
                complete_items(items);
            }
        }
    }
    let is_bare = volume.as_object().is_some_and(|fields| fields.len() == 1);
    if is_bare {
        volume["emptyDir"] = Value::Object(Map::new());
    }
}

fn complete_items(source: &mut Value) {
    for item in each(source, "items") {
        if let Some(field) = item.get_mut("fieldRef") {
            meta::default(field, "apiVersion", "v1");
        }
    }
}

#[cfg(test)]
mod tests;
