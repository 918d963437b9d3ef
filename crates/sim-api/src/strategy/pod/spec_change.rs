//! Mutable fields of a pod's spec: images, a shorter deadline, more tolerations, fewer gates.

use serde_json::Value;

use crate::{meta, status_error::FieldError};

const MESSAGE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                       `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                       `spec.tolerations` (only additions to existing tolerations),\
                       `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                       previously negative)";

/// Validates a change.
pub(super) fn check(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut causes = Vec::new();
    let deadline = |pod| meta::number(pod, "/spec/activeDeadlineSeconds");
    match (deadline(old), deadline(new)) {
        (Some(_), None) => causes.push(FieldError::invalid(
            "spec.activeDeadlineSeconds",
            &Value::Null,
            "must not update from a positive integer to nil value",
        )),
        (Some(old), Some(new)) if new > old => causes.push(FieldError::invalid(
            "spec.activeDeadlineSeconds",
            &new.into(),
            "must be less than or equal to previous value",
        )),
        _ => {}
    }
    let tolerations = |pod| meta::entries(pod, "/spec/tolerations");
    let kept = tolerations(old)
        .iter()
        .all(|one| tolerations(new).contains(one));
    if !kept {
        causes.push(FieldError::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    let mut wanted = new["spec"].clone();
    let spec = &old["spec"];
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        meta::copy_field(&mut wanted, spec, field);
    }
    for list in ["containers", "initContainers"] {
        let before = meta::entries(old, &format!("/spec/{list}"));
        let after = wanted.get_mut(list).and_then(Value::as_array_mut);
        let pairs = after.into_iter().flatten().zip(before);
        pairs.for_each(|(after, before)| meta::copy_field(after, before, "image"));
    }
    if wanted != *spec {
        causes.push(FieldError::forbidden("spec", MESSAGE));
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_few_fields_of_a_pod_change() {
        let pod = json!({ "spec": {
            "nodeName": "n", "activeDeadlineSeconds": 5,
            "containers": [{ "name": "a", "image": "web:1" }],
        } });
        let with = |pointer: &str, value: Value| {
            let mut changed = pod.clone();
            let (above, key) = pointer.rsplit_once('/').unwrap();
            changed.pointer_mut(above).unwrap()[key] = value;
            check(&pod, &changed)
                .into_iter()
                .map(|cause| cause.field)
                .collect::<Vec<_>>()
        };
        assert!(with("/spec/containers/0/image", json!("web:2")).is_empty());
        assert!(with("/spec/activeDeadlineSeconds", json!(4)).is_empty());
        assert!(with("/spec/tolerations", json!([{ "operator": "Exists" }])).is_empty());
        assert_eq!(
            with("/spec/activeDeadlineSeconds", json!(6)),
            ["spec.activeDeadlineSeconds"]
        );
        assert_eq!(with("/spec/nodeName", json!("m")), ["spec"]);
        assert_eq!(with("/spec/containers/0/name", json!("b")), ["spec"]);
    }
}
