//! Changes as clients send them, against a pod.

use serde_json::{Value, json};

use super::*;

const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web-n1", "namespace": "default", "uid": "u1", "resourceVersion": "7",
                      "labels": { "app": "web" } },
        "spec": {
            "containers": [{ "name": "web", "image": "web:1" }],
            "ephemeralContainers": [{ "name": "old", "image": "busybox", "command": ["sh"] }],
        },
        "status": { "phase": "Running", "conditions": [
            { "type": "lb/up", "status": "False", "reason": "Wait", "lastProbeTime": null,
              "lastTransitionTime": "2026-03-01T10:00:00Z" },
            { "type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady" },
        ] },
    })
}

fn with_conditions(patch: &Value) -> Value {
    json!({ "status": { "conditions": patch } })
}

fn conditions(kind: &str, patch: &Value) -> Result<ConditionChanges, ActionError> {
    PodPatch::read(kind, patch.to_string().as_bytes())?.conditions(&pod())
}

fn set(kind: &str, status: &str, reason: &str) -> PodCondition {
    PodCondition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
        last_transition: None,
    }
}

#[track_caller]
fn refused(error: ActionError) -> String {
    match error {
        ActionError::Invalid(errors) => errors
            .iter()
            .map(|error| format!("{}: {}", error.field, error.message))
            .collect::<Vec<_>>()
            .join("; "),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_strategic_patch_sets_conditions_by_their_type() {
    for (patch, expected, removed) in [
        (
            json!([{ "type": "lb/up", "status": "True" }]),
            vec![set("lb/up", "True", "Wait")],
            vec![],
        ),
        (
            json!([{ "type": "lb/up", "status": "True", "reason": null }]),
            vec![set("lb/up", "True", "")],
            vec![],
        ),
        (
            json!([{ "type": "DisruptionTarget", "status": "True", "reason": "Drill" }]),
            vec![set("DisruptionTarget", "True", "Drill")],
            vec![],
        ),
        (
            json!([{ "type": "lb/up", "status": "False" }]),
            vec![],
            vec![],
        ),
        (
            json!([{ "type": "Ready", "status": "False" }]),
            vec![],
            vec![],
        ),
        (
            json!([{ "type": "lb/up", "$patch": "delete" }]),
            vec![],
            vec!["lb/up"],
        ),
    ] {
        let changes = conditions(STRATEGIC, &with_conditions(&patch)).unwrap();
        assert_eq!(changes.set, expected, "{patch}");
        assert_eq!(changes.removed, removed, "{patch}");
    }
}

#[test]
fn a_merge_patch_replaces_all_conditions_that_are_not_the_agents() {
    for (patch, expected, removed) in [
        (
            json!([{ "type": "a", "status": "Unknown" }]),
            vec![set("a", "Unknown", "")],
            vec!["lb/up"],
        ),
        (
            json!([pod()["status"]["conditions"][1], { "type": "lb/up", "status": "True" }]),
            vec![set("lb/up", "True", "")],
            vec![],
        ),
        (json!([]), vec![], vec!["lb/up"]),
        (json!(null), vec![], vec!["lb/up"]),
    ] {
        let changes = conditions(MERGE, &with_conditions(&patch)).unwrap();
        assert_eq!(changes.set, expected, "{patch}");
        assert_eq!(changes.removed, removed, "{patch}");
    }
}

#[test]
fn a_json_patch_changes_what_it_points_at() {
    let changes = conditions(
        JSON,
        &json!([
            { "op": "test", "path": "/status/conditions/0/type", "value": "lb/up" },
            { "op": "replace", "path": "/status/conditions/0/status", "value": "True" },
            { "op": "add", "path": "/status/conditions/-", "value": { "type": "b", "status": "True" } },
        ]),
    );
    let changes = changes.unwrap();
    assert_eq!(
        changes.set,
        [set("lb/up", "True", "Wait"), set("b", "True", "")]
    );
    let wrong = json!([{ "op": "test", "path": "/status/phase", "value": "Failed" }]);
    let error = refused(conditions(JSON, &wrong).unwrap_err());
    assert!(
        error.contains("the test of \"/status/phase\" failed"),
        "{error}"
    );
}

#[test]
fn the_time_of_a_change_may_come_from_the_client() {
    let patch = json!([{ "type": "lb/up", "status": "True",
                         "lastTransitionTime": "2026-03-01T11:00:00Z" }]);
    let changes = conditions(STRATEGIC, &with_conditions(&patch)).unwrap();
    let time = changes.set[0].last_transition.unwrap();
    assert_eq!(time.to_string(), "2026-03-01T11:00:00Z");
}

#[test]
fn the_agents_conditions_and_everything_else_are_refused_by_name() {
    let condition = |condition: Value| with_conditions(&json!([condition]));
    for (patch, message) in [
        (
            json!({ "status": { "phase": "Failed" } }),
            "status.phase: Forbidden: only status.conditions",
        ),
        (
            json!({ "status": { "podIP": "10.0.0.1", "conditions": [] } }),
            "status.podIP: Forbidden",
        ),
        (
            json!({ "metadata": { "labels": { "app": "x" } } }),
            "metadata.labels.app: Forbidden",
        ),
        (
            json!({ "spec": { "activeDeadlineSeconds": 3 } }),
            "spec.activeDeadlineSeconds: Forbidden",
        ),
        (json!({ "statu": {"x": 1} }), "statu.x: Forbidden"),
        (
            condition(json!({ "type": "Ready", "status": "True" })),
            "status.conditions[1]: Forbidden: the agent itself works out the condition Ready",
        ),
        (
            condition(json!({ "type": "PodScheduled", "status": "True" })),
            "the agent itself works out the condition PodScheduled",
        ),
        (
            condition(json!({ "type": "a b", "status": "True" })),
            "status.conditions[2].type: Invalid value: \"a b\": use up to 63",
        ),
        (
            condition(json!({ "type": "a", "status": "yes" })),
            "status.conditions[2].status: Invalid value: \"yes\": must be True, False or Unknown",
        ),
        (
            condition(json!({ "type": "a" })),
            "status.conditions[2].status: Invalid value: null",
        ),
        (
            condition(json!({ "type": "a", "status": "True", "colour": "red" })),
            "status.conditions[2].colour: Invalid value: \"red\": a condition has no such field",
        ),
        (
            condition(json!({ "type": "a", "status": "True", "reason": 3 })),
            "status.conditions[2].reason: Invalid value: 3: must be a text",
        ),
        (
            condition(json!({ "type": "a", "status": "True", "lastTransitionTime": "now" })),
            "status.conditions[2].lastTransitionTime: Invalid value: \"now\": must be a time",
        ),
        (
            condition(
                json!({ "type": "a", "status": "True", "lastProbeTime": "2026-03-01T10:00:00Z" }),
            ),
            "status.conditions[2].lastProbeTime: Invalid value",
        ),
        (
            condition(json!({ "type": "a", "status": "True", "observedGeneration": 3 })),
            "status.conditions[2].observedGeneration: Invalid value: 3",
        ),
    ] {
        let error = refused(conditions(STRATEGIC, &patch).unwrap_err());
        assert!(error.contains(message), "{patch}: {error}");
    }
    let twice = json!([{ "type": "a", "status": "True" }, { "type": "a", "status": "False" }]);
    let error = refused(conditions(MERGE, &with_conditions(&twice)).unwrap_err());
    assert!(
        error.contains("[1].type: Duplicate value: \"a\""),
        "{error}"
    );
    let error = refused(conditions(MERGE, &with_conditions(&json!({}))).unwrap_err());
    assert!(
        error.contains("status.conditions: Invalid value: {}: must be a list"),
        "{error}"
    );
}

#[test]
fn a_change_of_another_version_or_pod_is_a_conflict() {
    for metadata in [json!({ "resourceVersion": "6" }), json!({ "uid": "u2" })] {
        let patch = json!({ "metadata": metadata, "status": { "conditions": [] } });
        let error = conditions(STRATEGIC, &patch).unwrap_err();
        assert!(matches!(error, ActionError::Conflict(_)), "{error:?}");
    }
    let same = json!({ "metadata": { "resourceVersion": "7", "uid": "u1" }, "status": {} });
    assert_eq!(
        conditions(STRATEGIC, &same).unwrap(),
        ConditionChanges::default()
    );
}

#[test]
fn a_whole_status_can_be_put() {
    let mut new = pod();
    new["status"]["conditions"][0]["status"] = "True".into();
    // What Go's types write although nothing is there.
    new["metadata"]["creationTimestamp"] = Value::Null;
    new["spec"]["containers"][0]["resources"] = json!({});
    let put = |pod: &Value| PodPatch::replacement(pod.to_string().as_bytes()).unwrap();
    let changes = put(&new).conditions(&pod()).unwrap();
    assert_eq!(changes.set, [set("lb/up", "True", "Wait")]);
    new["status"]["phase"] = "Failed".into();
    let error = refused(put(&new).conditions(&pod()).unwrap_err());
    assert!(error.starts_with("status.phase: Forbidden"), "{error}");
}

fn ephemeral(kind: &str, patch: &Value) -> Result<Vec<Value>, ActionError> {
    PodPatch::read(kind, patch.to_string().as_bytes())?.ephemeral_containers(&pod())
}

fn with_ephemeral(list: &Value) -> Value {
    json!({ "spec": { "ephemeralContainers": list } })
}

#[test]
fn ephemeral_containers_are_added_as_kubectl_debug_sends_them() {
    let new = json!({ "name": "debugger-x", "image": "busybox", "resources": {},
                      "targetContainerName": "web", "stdin": true });
    let wanted = vec![new.clone()];
    let patch = json!({ "spec": {
        "$setElementOrder/ephemeralContainers": [{ "name": "old" }, { "name": "debugger-x" }],
        "ephemeralContainers": [new],
    } });
    assert_eq!(ephemeral(STRATEGIC, &patch).unwrap(), wanted);
    let old = pod()["spec"]["ephemeralContainers"][0].clone();
    let both = with_ephemeral(&json!([new, old]));
    assert_eq!(ephemeral(MERGE, &both).unwrap(), wanted);
    let add = json!([{ "op": "add", "path": "/spec/ephemeralContainers/-", "value": new }]);
    assert_eq!(ephemeral(JSON, &add).unwrap(), wanted);
    let mut put = pod();
    put["spec"]["ephemeralContainers"] = json!([old, new]);
    put["status"] = json!({});
    let put = PodPatch::replacement(put.to_string().as_bytes()).unwrap();
    assert_eq!(put.ephemeral_containers(&pod()).unwrap(), wanted);
    assert!(ephemeral(MERGE, &json!({})).unwrap().is_empty());
}

#[test]
fn ephemeral_containers_that_are_there_stay_as_they_are() {
    let old = pod()["spec"]["ephemeralContainers"][0].clone();
    for (kind, patch, message) in [
        (
            MERGE,
            with_ephemeral(&json!([])),
            r#"spec.ephemeralContainers: Forbidden: existing ephemeral containers "old" may not be removed"#,
        ),
        (
            STRATEGIC,
            with_ephemeral(&json!([{ "name": "old", "image": "other" }])),
            r#"existing ephemeral containers "old" may not be changed"#,
        ),
        (
            STRATEGIC,
            with_ephemeral(&json!([{ "name": "old", "$patch": "delete" }])),
            "may not be removed",
        ),
        (
            MERGE,
            with_ephemeral(&json!([old, { "image": "x" }])),
            "spec.ephemeralContainers[1].name: Required value",
        ),
        (
            MERGE,
            with_ephemeral(&json!([old, { "name": "x" }, { "name": "x" }])),
            "spec.ephemeralContainers[2].name: Duplicate value: \"x\"",
        ),
        (
            MERGE,
            with_ephemeral(&json!([old, { "name": "old", "image": "other" }])),
            "spec.ephemeralContainers[1].name: Duplicate value: \"old\"",
        ),
        (
            MERGE,
            with_ephemeral(&json!([old, 3])),
            "spec.ephemeralContainers[1]: Invalid value: 3: must be an object",
        ),
        (
            MERGE,
            with_ephemeral(&json!("x")),
            "spec.ephemeralContainers: Invalid value: \"x\": must be a list",
        ),
        (
            MERGE,
            json!({ "spec": { "containers": [] } }),
            "spec.containers: Forbidden: only spec.ephemeralContainers can be added to",
        ),
        (
            MERGE,
            json!({ "status": { "phase": "Failed" } }),
            "status.phase: Forbidden: only spec.ephemeralContainers",
        ),
    ] {
        let error = refused(ephemeral(kind, &patch).unwrap_err());
        assert!(error.contains(message), "{patch}: {error}");
    }
}

#[test]
fn an_invalid_patch_is_a_bad_request() {
    for (kind, body) in [
        (MERGE, "{"),
        (MERGE, "[]"),
        (STRATEGIC, "3"),
        (JSON, "{}"),
        ("application/apply-patch+yaml", "{}"),
        (
            STRATEGIC,
            r#"{"status":{"conditions":[{"status":"True"}]}}"#,
        ),
    ] {
        let result = PodPatch::read(kind, body.as_bytes())
            .and_then(|patch| patch.conditions(&pod()).map(drop));
        assert!(
            matches!(result, Err(ActionError::BadRequest(_))),
            "{kind} {body}: {result:?}"
        );
    }
}
