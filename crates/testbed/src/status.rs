//! Reading the status of a pod in the API's JSON.

use serde_json::Value;

/// The status of one container, including init and ephemeral containers; null if there is none.
#[must_use]
pub fn container<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let lists = [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ];
    lists
        .into_iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten()
        .find(|status| status["name"] == name)
        .unwrap_or(&Value::Null)
}

/// The restart count of a container.
#[must_use]
pub fn restarts(pod: &Value, name: &str) -> u64 {
    container(pod, name)["restartCount"].as_u64().unwrap_or(0)
}

/// The container ID, prefixed with the runtime's name; empty if there is none.
#[must_use]
pub fn id<'a>(pod: &'a Value, name: &str) -> &'a str {
    container(pod, name)["containerID"]
        .as_str()
        .unwrap_or_default()
}

/// How the current instance of a container terminated; null if it did not.
#[must_use]
pub fn ended<'a>(pod: &'a Value, name: &str) -> &'a Value {
    &container(pod, name)["state"]["terminated"]
}

/// How the previous instance terminated; null if there was none.
#[must_use]
pub fn ended_before<'a>(pod: &'a Value, name: &str) -> &'a Value {
    &container(pod, name)["lastState"]["terminated"]
}

/// The waiting reason of a container; empty if it does not wait.
#[must_use]
pub fn waits_for<'a>(pod: &'a Value, name: &str) -> &'a str {
    container(pod, name)["state"]["waiting"]["reason"]
        .as_str()
        .unwrap_or_default()
}

/// Whether a container runs.
#[must_use]
pub fn runs(pod: &Value, name: &str) -> bool {
    container(pod, name)["state"]["running"].is_object()
}

/// A condition of a pod or a node by its type; null if there is none.
#[must_use]
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind)
        .unwrap_or(&Value::Null)
}

/// Whether the pod is ready.
#[must_use]
pub fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready")["status"] == "True"
}

/// Whether all containers of the pod have terminated.
#[must_use]
pub fn has_ended(pod: &Value) -> bool {
    matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_and_conditions_are_found_by_name() {
        let pod = json!({ "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True" }],
            "initContainerStatuses": [{ "name": "i", "restartCount": 2 }],
            "containerStatuses": [
                { "name": "a", "state": { "running": {} } },
                { "name": "b", "state": { "waiting": { "reason": "ErrImagePull" } } },
            ],
        }});
        assert!(is_ready(&pod) && !has_ended(&pod));
        assert!(runs(&pod, "a") && !runs(&pod, "b") && !runs(&pod, "c"));
        assert_eq!(restarts(&pod, "i"), 2);
        assert_eq!(waits_for(&pod, "b"), "ErrImagePull");
        assert!(!is_ready(&json!({})));
    }
}
