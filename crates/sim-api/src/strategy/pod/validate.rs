//! Validation of a new pod: a part of upstream's, enough to refuse manifests with common errors.

use serde_json::Value;

use crate::{meta, status_error::FieldError};

/// Validates a pod.
pub(super) fn check(pod: &Value) -> Vec<FieldError> {
    let mut causes = Vec::new();
    if meta::entries(pod, "/spec/containers").is_empty() {
        causes.push(FieldError::required("spec.containers", ""));
    }
    let mut names = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let place = format!("/spec/{list}");
        for (index, container) in meta::entries(pod, &place).iter().enumerate() {
            let path = format!("spec.{list}[{index}]");
            let name = meta::text(container, "/name");
            if name.is_empty() {
                causes.push(FieldError::required(format!("{path}.name"), ""));
            } else if names.contains(&name) {
                causes.push(FieldError {
                    reason: "FieldValueDuplicate",
                    field: format!("{path}.name"),
                    message: format!("Duplicate value: {name:?}"),
                });
            }
            names.push(name);
            if meta::text(container, "/image").is_empty() {
                causes.push(FieldError::required(format!("{path}.image"), ""));
            }
            causes.extend(mounts(pod, container, &path));
        }
    }
    let policy = meta::text(pod, "/spec/restartPolicy");
    if !["Always", "OnFailure", "Never"].contains(&policy) {
        causes.push(FieldError {
            reason: "FieldValueNotSupported",
            field: "spec.restartPolicy".to_owned(),
            message: format!(
                "Unsupported value: {policy:?}: supported values: \"Always\", \"Never\", \
                 \"OnFailure\""
            ),
        });
    }
    causes
}

/// Finds mounts of volumes that the pod does not have.
fn mounts(pod: &Value, container: &Value, path: &str) -> Vec<FieldError> {
    let volumes = meta::entries(pod, "/spec/volumes");
    let mut causes = Vec::new();
    for (index, mount) in meta::entries(container, "/volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let name = meta::text(mount, "/name");
        if !volumes.iter().any(|volume| volume["name"] == name) {
            causes.push(FieldError {
                reason: "FieldValueNotFound",
                field: format!("{path}.name"),
                message: format!("Not found: {name:?}"),
            });
        }
        if meta::text(mount, "/mountPath").is_empty() {
            causes.push(FieldError::required(format!("{path}.mountPath"), ""));
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_fields_are_named() {
        let pod = |containers: Value| json!({ "spec": { "restartPolicy": "Always", "containers": containers } });
        let fine = json!([{ "name": "a", "image": "web" }]);
        assert!(check(&pod(fine)).is_empty());
        for (containers, field) in [
            (json!([]), "spec.containers"),
            (json!([{ "image": "web" }]), "spec.containers[0].name"),
            (json!([{ "name": "a" }]), "spec.containers[0].image"),
            (
                json!([{ "name": "a", "image": "web" }, { "name": "a", "image": "web" }]),
                "spec.containers[1].name",
            ),
            (
                json!([{ "name": "a", "image": "x", "volumeMounts": [{ "name": "v", "mountPath": "/" }] }]),
                "spec.containers[0].volumeMounts[0].name",
            ),
        ] {
            assert_eq!(check(&pod(containers))[0].field, field);
        }
    }
}
