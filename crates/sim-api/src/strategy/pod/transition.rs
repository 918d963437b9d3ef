//! Container state transitions: the API server refuses a status in which a container that
//! terminated for good runs again. Source: upstream's ValidateContainerStateTransition and its
//! siblings.

use serde_json::Value;

use crate::{meta, status_error::FieldError};

/// Validates a new status.
pub(super) fn check(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut causes = Vec::new();
    if any_rule_restarts_all(old) {
        return causes;
    }
    for (statuses, specs) in [
        ("containerStatuses", "containers"),
        ("initContainerStatuses", "initContainers"),
        ("ephemeralContainerStatuses", "ephemeralContainers"),
    ] {
        let place = format!("/status/{statuses}");
        for (index, before) in meta::entries(old, &place).iter().enumerate() {
            let Some(ended) = before
                .pointer("/state/terminated")
                .filter(|end| !end.is_null())
            else {
                continue;
            };
            let mut after = meta::entries(new, &place).iter();
            let after = after.find(|one| one["name"] == before["name"]);
            let lives = after.is_some_and(|one| one.pointer("/state/terminated").is_none());
            let mut containers = meta::entries(old, &format!("/spec/{specs}")).iter();
            let container = containers.find(|one| one["name"] == before["name"]);
            if lives && !may_restart(old, specs, container, ended) {
                causes.push(FieldError::forbidden(
                    format!("status.{statuses}[{index}].state"),
                    "may not be transitioned to non-terminated state",
                ));
            }
        }
    }
    causes
}

fn any_rule_restarts_all(pod: &Value) -> bool {
    let lists = ["/spec/initContainers", "/spec/containers"];
    let mut rules = lists
        .iter()
        .flat_map(|list| meta::entries(pod, list))
        .flat_map(|container| meta::entries(container, "/restartPolicyRules"));
    rules.any(|rule| rule["action"] == "RestartAllContainers")
}

fn may_restart(pod: &Value, list: &str, container: Option<&Value>, ended: &Value) -> bool {
    let Some(container) = container.filter(|_| list != "ephemeralContainers") else {
        return false;
    };
    let code = meta::number(ended, "/exitCode").unwrap_or(0);
    for rule in meta::entries(container, "/restartPolicyRules") {
        let codes = meta::entries(rule, "/exitCodes/values");
        let is_listed = codes.iter().any(|one| one.as_i64() == Some(code));
        let wants_listed = meta::text(rule, "/exitCodes/operator") != "NotIn";
        if is_listed == wants_listed {
            return true;
        }
    }
    let own = meta::text(container, "/restartPolicy");
    let policy = if own.is_empty() {
        meta::text(pod, "/spec/restartPolicy")
    } else {
        own
    };
    match policy {
        "Always" => true,
        "OnFailure" => code != 0,
        // Init containers of a pod with `restartPolicy: Never` are not restarted either.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(policy: &str, code: i64, container: Value) -> bool {
        let mut container = container;
        container["name"] = "a".into();
        let pod = |state: Value| {
            json!({
                "spec": { "restartPolicy": policy, "containers": [container] },
                "status": { "containerStatuses": [{ "name": "a", "state": state }] },
            })
        };
        let old = pod(json!({ "terminated": { "exitCode": code } }));
        !check(&old, &pod(json!({ "running": {} }))).is_empty()
    }

    #[test]
    fn a_container_that_terminated_for_good_cannot_run_again() {
        assert!(!refused("Always", 0, json!({})));
        assert!(!refused("OnFailure", 1, json!({})));
        assert!(refused("OnFailure", 0, json!({})));
        assert!(refused("Never", 1, json!({})));
        assert!(!refused("Never", 0, json!({ "restartPolicy": "Always" })));
        let rule = json!({ "restartPolicyRules": [
            { "action": "Restart", "exitCodes": { "operator": "In", "values": [42] } },
        ] });
        assert!(!refused("Never", 42, rule.clone()));
        assert!(refused("Never", 41, rule));
    }
}
