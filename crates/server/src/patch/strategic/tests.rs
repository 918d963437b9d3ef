//! Tests of `strategic`.

use serde_json::json;

use super::*;

fn pod() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "a": "1", "b": "2" }, "finalizers": ["x", "y"] },
        "status": { "phase": "Running", "conditions": [
            { "type": "Ready", "status": "True" },
            { "type": "a/b", "status": "False", "reason": "No" },
        ] },
    })
}

fn conditions(patch: &Value) -> Value {
    apply(&pod(), &json!({ "status": { "conditions": patch } })).unwrap()["status"]["conditions"]
        .clone()
}

#[test]
fn entries_with_keys_are_merged_one_by_one() {
    let ready = json!({ "type": "Ready", "status": "True" });
    for (patch, result) in [
        (
            json!([{ "type": "a/b", "status": "True" }]),
            json!([ready, { "type": "a/b", "status": "True", "reason": "No" }]),
        ),
        (
            json!([{ "type": "a/b", "reason": null }]),
            json!([ready, { "type": "a/b", "status": "False" }]),
        ),
        (
            json!([{ "type": "c", "status": "True", "reason": null }]),
            json!([
                ready,
                { "type": "a/b", "status": "False", "reason": "No" },
                { "type": "c", "status": "True" },
            ]),
        ),
        (
            json!([{ "type": "a/b", "$patch": "delete" }, { "type": "z", "$patch": "delete" }]),
            json!([ready]),
        ),
        (
            json!([{ "$patch": "replace" }, { "type": "c" }]),
            json!([{ "type": "c" }]),
        ),
    ] {
        assert_eq!(conditions(&patch), result, "{patch}");
    }
}

#[test]
fn directives_of_kubectl_are_followed() {
    let patch = json!({
        "metadata": {
            "labels": { "$retainKeys": ["b", "c"], "c": "3" },
            "$deleteFromPrimitiveList/finalizers": ["x"],
        },
        "status": {
            "$setElementOrder/conditions": [{ "type": "a/b" }, { "type": "Ready" }],
            "phase": null,
        },
    });
    let patched = apply(&pod(), &patch).unwrap();
    assert_eq!(patched["metadata"]["labels"], json!({ "b": "2", "c": "3" }));
    assert_eq!(patched["metadata"]["finalizers"], json!(["y"]));
    assert_eq!(
        patched["status"]["conditions"],
        pod()["status"]["conditions"]
    );
    assert!(patched["status"].get("phase").is_none());
    let replaced = apply(
        &pod(),
        &json!({ "metadata": { "$patch": "replace", "name": "x" } }),
    );
    assert_eq!(replaced.unwrap()["metadata"], json!({ "name": "x" }));
}

#[test]
fn lists_below_containers_have_keys_of_their_own_and_finalizers_add_up() {
    let pod = json!({
        "metadata": { "finalizers": ["x"] },
        "spec": { "containers": [{
            "name": "a", "image": "web:1", "args": ["x", "y"],
            "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
        }] },
    });
    let patch = json!({
        "metadata": { "finalizers": ["x", "y"] },
        "spec": { "containers": [{
            "name": "a", "args": ["z"], "env": [{ "name": "B", "value": "3" }],
        }] },
    });
    let patched = apply(&pod, &patch).unwrap();
    assert_eq!(patched["metadata"]["finalizers"], json!(["x", "y"]));
    assert_eq!(
        patched["spec"]["containers"],
        json!([{
            "name": "a", "image": "web:1", "args": ["z"],
            "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "3" }],
        }])
    );
}

#[test]
fn broken_patches_are_refused() {
    for patch in [
        json!({ "status": { "conditions": [{ "status": "True" }] } }),
        json!({ "status": { "conditions": ["x"] } }),
        json!({ "status": { "conditions": [{ "type": "a", "$patch": "drop" }] } }),
        json!({ "status": { "conditions": [{ "type": "a", "$patch": 1 }] } }),
        json!({ "status": { "$patch": "drop" } }),
        json!({ "status": { "$retainKeys": 1 } }),
    ] {
        let result = apply(&pod(), &patch);
        assert!(matches!(result, Err(PatchError::Malformed(_))), "{patch}");
    }
}
