//! Pod manifests for tests, built as JSON, which is valid YAML too.

use serde_json::{Value, json};

use crate::images;

/// A script for a shell with PID 1: it waits forever, and exits with code 0 on SIGTERM, which it
/// would ignore without a trap.
pub const WAIT: &str = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

/// A pod. It has a grace period of one second, and the node's DNS: there is no cluster.
#[must_use]
pub fn pod(name: &str, spec: &Value) -> Value {
    let basis = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "dnsPolicy": "Default", "terminationGracePeriodSeconds": 1 },
    });
    with(basis, &json!({ "spec": spec }))
}

/// A container that runs a shell script.
#[must_use]
pub fn shell(name: &str, script: &str) -> Value {
    json!({
        "name": name,
        "image": images::BUSYBOX_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
    })
}

/// A container that waits, and exits on SIGTERM.
#[must_use]
pub fn waiting(name: &str) -> Value {
    shell(name, WAIT)
}

/// `value` merged with `more`. Objects are merged field by field; any other value replaces the old
/// one.
#[must_use]
pub fn with(mut value: Value, more: &Value) -> Value {
    merge(&mut value, more);
    value
}

fn merge(value: &mut Value, more: &Value) {
    match (value, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, field) in more {
                merge(fields.entry(name.as_str()).or_insert(Value::Null), field);
            }
        }
        (value, more) => *value = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_merged_and_everything_else_is_replaced() {
        let spec = json!({ "dnsPolicy": "None", "containers": [1] });
        let whole = pod("a", &spec);
        assert_eq!(
            whole["spec"],
            json!({
                "dnsPolicy": "None",
                "terminationGracePeriodSeconds": 1,
                "containers": [1],
            })
        );
        let labelled = with(whole, &json!({ "metadata": { "labels": { "a": "b" } } }));
        assert_eq!(
            labelled["metadata"],
            json!({ "name": "a", "labels": { "a": "b" } })
        );
    }
}
