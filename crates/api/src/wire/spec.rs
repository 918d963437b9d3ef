//! What a container's status repeats of the specification: `volumeMounts`, and once the runtime has
//! made the container `resources` and `allocatedResources` (kubelet: `convertToAPIContainerStatuses`).
//!
//! Resources of a container do not change while it runs: what was allocated is what it has.

use serde_json::{Map, Value, json};

use crate::status::PodStatus;

const LISTS: [(&str, &str); 3] = [
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];

/// Adds it to the Kubernetes form of a status. `spec` is a v1 `PodSpec`.
pub(super) fn add(json: &mut Value, spec: &Value, status: &PodStatus) {
    let recursive = |name: &Value| {
        let container = name.as_str().and_then(|name| status.container(name));
        container.map_or(&[][..], |container| &container.recursive_read_only)
    };
    for (containers, statuses) in LISTS {
        let statuses = json.get_mut(statuses).and_then(Value::as_array_mut);
        let (Some(containers), Some(statuses)) = (spec[containers].as_array(), statuses) else {
            continue;
        };
        for status in statuses {
            let container = containers.iter().find(|one| one["name"] == status["name"]);
            if let (Some(container), Some(status)) = (container, status.as_object_mut()) {
                one(status, container, recursive(&container["name"]));
            }
        }
    }
}

fn one(status: &mut Map<String, Value>, container: &Value, recursive: &[Box<str>]) {
    let mounts = container["volumeMounts"].as_array();
    if let Some(mounts) = mounts.filter(|mounts| !mounts.is_empty()) {
        let made = status.contains_key("containerID");
        let mounts = mounts.iter().map(|one| mount(one, made, recursive));
        let mounts: Vec<Value> = mounts.collect();
        status.insert("volumeMounts".to_owned(), mounts.into());
    }
    if status.contains_key("containerID") {
        let resources = resources(&container["resources"]);
        let requests = resources["requests"].as_object();
        if let Some(requests) = requests.filter(|requests| !requests.is_empty()) {
            status.insert("allocatedResources".to_owned(), requests.clone().into());
        }
        status.insert("resources".to_owned(), resources);
    }
}

/// A limit without a request is the request, too.
fn resources(written: &Value) -> Value {
    let mut resources = written.as_object().cloned().unwrap_or_default();
    if let Some(limits) = written["limits"].as_object() {
        let requests = resources.entry("requests").or_insert_with(|| json!({}));
        if requests.is_null() {
            *requests = json!({});
        }
        for (name, limit) in limits {
            if requests[name].is_null() {
                requests[name] = limit.clone();
            }
        }
    }
    resources.into()
}

/// What is below a read-only mount is read-only if the runtime says so; of a container that is not
/// made yet, if it can be made in no other way.
fn mount(mount: &Value, made: bool, recursive: &[Box<str>]) -> Value {
    let mut status = json!({ "name": mount["name"], "mountPath": mount["mountPath"] });
    if mount["readOnly"] == true {
        let path = mount["mountPath"].as_str().unwrap_or_default();
        let path = path.strip_prefix('/').unwrap_or(path);
        let is_recursive = match made {
            true => recursive
                .iter()
                .any(|one| one.strip_prefix('/').unwrap_or(one) == path),
            false => mount["recursiveReadOnly"] == "Enabled",
        };
        status["readOnly"] = true.into();
        status["recursiveReadOnly"] = match is_recursive {
            true => "Enabled",
            false => "Disabled",
        }
        .into();
    }
    status
}
