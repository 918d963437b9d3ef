//! Responses with null for everything that is empty or absent, as Go programs may write them.

use bytes::Bytes;
use serde_json::{Map, Value};

/// Fields that are set to null if they are absent, by their parent field.
const ABSENT: &[(&str, &[&str])] = &[
    (
        "metadata",
        &[
            "annotations",
            "continue",
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "finalizers",
            "generateName",
            "generation",
            "labels",
            "managedFields",
            "namespace",
            "ownerReferences",
            "remainingItemCount",
        ],
    ),
    (
        "spec",
        &[
            "dnsConfig",
            "ephemeralContainers",
            "hostAliases",
            "imagePullSecrets",
            "initContainers",
            "nodeSelector",
            "podCIDRs",
            "ports",
            "readinessGates",
            "securityContext",
            "taints",
            "tolerations",
            "unschedulable",
            "volumes",
        ],
    ),
    (
        "status",
        &[
            "addresses",
            "allocatable",
            "capacity",
            "conditions",
            "containerStatuses",
            "daemonEndpoints",
            "error",
            "features",
            "images",
            "initContainerStatuses",
            "message",
            "nodeInfo",
            "podIPs",
            "reason",
            "runtimeHandlers",
            "user",
            "volumesInUse",
        ],
    ),
    (
        "containers",
        &[
            "args",
            "command",
            "env",
            "envFrom",
            "lifecycle",
            "livenessProbe",
            "ports",
            "resources",
            "securityContext",
            "stdin",
            "volumeMounts",
            "workingDir",
        ],
    ),
    ("conditions", &["lastHeartbeatTime", "message", "reason"]),
    ("images", &["names", "sizeBytes"]),
];

/// Replaces empty and absent fields by null, recursively.
pub(crate) fn insert_nulls(value: &mut Value) {
    below("", value);
}

/// The same for an event of a watch.
pub(crate) fn insert_nulls_in_line(line: &Bytes) -> Bytes {
    let Ok(mut event) = serde_json::from_slice::<Value>(line) else {
        return line.clone();
    };
    insert_nulls(&mut event);
    format!("{event}\n").into()
}

fn below(name: &str, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| below(name, item)),
        Value::Object(fields) => {
            for (field, value) in fields.iter_mut() {
                below(field, value);
                if is_empty(value) {
                    *value = Value::Null;
                }
            }
            add(name, fields);
        }
        _ => {}
    }
}

fn add(name: &str, fields: &mut Map<String, Value>) {
    let absent = ABSENT.iter().find(|(holder, _)| *holder == name);
    for field in absent.map(|(_, fields)| *fields).unwrap_or_default() {
        fields.entry(*field).or_insert(Value::Null);
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn empty_and_absent_fields_become_null() {
        let line = json!({"type": "ADDED", "object": {
            "metadata": {"name": "a", "labels": {}},
            "status": {"images": [{"names": []}], "phase": "", "conditions": []},
        }});
        let read: Value =
            serde_json::from_slice(&insert_nulls_in_line(&line.to_string().into())).unwrap();
        let object = &read["object"];
        assert_eq!(object["metadata"]["name"], "a");
        let fields = object["metadata"].as_object().unwrap();
        assert!(fields["labels"].is_null() && fields["ownerReferences"].is_null());
        let image = object["status"]["images"][0].as_object().unwrap();
        assert!(image["names"].is_null() && image["sizeBytes"].is_null());
        assert!(object["status"]["phase"].is_null());
        assert_eq!(insert_nulls_in_line(&Bytes::from("half")), "half");
    }
}
