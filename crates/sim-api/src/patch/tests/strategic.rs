//! Strategic merge patches, by rule.

use serde_json::{Value, json};

use super::after;
use crate::StatusError;

fn strategic(object: &Value, patch: &Value) -> Result<Value, StatusError> {
    after(object, "strategic-merge-patch", patch)
}

fn pod() -> Value {
    json!({
        "metadata": { "name": "web", "labels": { "a": "1" }, "finalizers": ["x", "y"] },
        "spec": {
            "containers": [
                { "name": "a", "image": "a:1", "args": ["x"], "env": [
                    { "name": "A", "value": "1" }, { "name": "B", "value": "2" },
                ] },
                { "name": "b", "image": "b:1" },
            ],
            "tolerations": [{ "key": "k", "operator": "Exists" }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
        },
        "status": { "conditions": [
            { "type": "Ready", "status": "True" }, { "type": "x/y", "status": "False", "reason": "No" },
        ] },
    })
}

/// Each is a patch, a pointer, and the value there afterwards.
#[test]
fn each_list_is_merged_by_its_own_rule() {
    for (patch, place, wanted) in [
        (
            json!({ "status": { "conditions": [{ "type": "x/y", "status": "True", "reason": null }] } }),
            "/status/conditions",
            json!([{ "type": "Ready", "status": "True" }, { "type": "x/y", "status": "True" }]),
        ),
        (
            json!({ "spec": { "containers": [{ "name": "a", "args": ["z"], "env": [{ "name": "B", "value": "3" }] }] } }),
            "/spec/containers/0",
            json!({ "name": "a", "image": "a:1", "args": ["z"], "env": [
                { "name": "A", "value": "1" }, { "name": "B", "value": "3" },
            ] }),
        ),
        (
            json!({ "spec": { "tolerations": [{ "key": "l" }] } }),
            "/spec/tolerations",
            json!([{ "key": "l" }]),
        ),
        (
            json!({ "metadata": { "finalizers": ["y", "z"] } }),
            "/metadata/finalizers",
            json!(["x", "y", "z"]),
        ),
        (
            json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["x", "q"] } }),
            "/metadata/finalizers",
            json!(["y"]),
        ),
        (
            json!({ "metadata": { "ownerReferences": [{ "uid": "u", "name": "o" }] } }),
            "/metadata/ownerReferences",
            json!([{ "uid": "u", "name": "o" }]),
        ),
        (
            json!({ "spec": { "containers": [{ "name": "a", "$patch": "delete" }] } }),
            "/spec/containers",
            json!([{ "name": "b", "image": "b:1" }]),
        ),
        (
            json!({ "spec": { "containers": [{ "$patch": "replace" }, { "name": "c" }] } }),
            "/spec/containers",
            json!([{ "name": "c" }]),
        ),
        (
            json!({ "metadata": { "labels": { "$patch": "replace", "b": "2" } } }),
            "/metadata/labels",
            json!({ "b": "2" }),
        ),
        (
            json!({ "metadata": { "labels": { "$patch": "delete" } } }),
            "/metadata/labels",
            json!({}),
        ),
        (
            json!({ "spec": { "volumes": [{ "name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": { "path": "/x" } }] } }),
            "/spec/volumes",
            json!([{ "name": "v", "hostPath": { "path": "/x" } }]),
        ),
    ] {
        let patched = strategic(&pod(), &patch).unwrap();
        assert_eq!(patched.pointer(place), Some(&wanted), "{patch}");
    }
}

#[test]
fn entries_have_the_order_of_the_patch_then_of_the_object() {
    let names = |patch: Value| {
        let object = json!({ "spec": { "containers": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] } });
        let patched = strategic(&object, &json!({ "spec": patch })).unwrap();
        let names = patched["spec"]["containers"].as_array().unwrap().iter();
        names
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect::<String>()
    };
    for (patch, wanted) in [
        // A new entry comes before entries that the patch does not name.
        (json!({ "containers": [{ "name": "n" }] }), "nabc"),
        (
            json!({ "containers": [{ "name": "b" }, { "name": "n" }] }),
            "abnc",
        ),
        (
            json!({ "containers": [{ "name": "c" }, { "name": "a" }] }),
            "bca",
        ),
        (
            json!({ "$setElementOrder/containers": [{ "name": "c" }, { "name": "b" }, { "name": "a" }] }),
            "cba",
        ),
        (
            json!({
                "$setElementOrder/containers": [{ "name": "a" }, { "name": "n" }, { "name": "b" }],
                "containers": [{ "name": "n" }],
            }),
            "anbc",
        ),
        (
            json!({
                "$setElementOrder/containers": [{ "name": "b" }, { "name": "c" }],
                "containers": [{ "name": "a", "$patch": "delete" }],
            }),
            "bc",
        ),
    ] {
        assert_eq!(names(patch.clone()), wanted, "{patch}");
    }
}

#[test]
fn an_invalid_patch_has_the_code_of_upstream() {
    for (patch, code) in [
        (
            json!({ "status": { "conditions": [{ "status": "True" }] } }),
            500,
        ),
        (json!({ "status": { "conditions": ["x"] } }), 500),
        (
            json!({ "status": { "conditions": [{ "type": "a", "$patch": "drop" }] } }),
            500,
        ),
        (json!({ "status": { "$patch": "merge" } }), 500),
        (json!({ "status": { "$retainKeys": 1 } }), 400),
        (
            json!({ "status": { "$retainKeys": ["conditions"], "phase": "Failed" } }),
            400,
        ),
        (json!({ "spec": { "$setElementOrder/containers": 1 } }), 400),
        (
            json!({ "spec": {
                "$setElementOrder/containers": [{ "name": "a" }],
                "containers": [{ "name": "b", "image": "b:2" }],
            } }),
            500,
        ),
    ] {
        let error = strategic(&pod(), &patch).unwrap_err();
        assert_eq!(error.code, code, "{patch}: {error}");
    }
}

#[test]
fn each_kind_has_its_own_lists() {
    let of = |plural: &str, object: Value, patch: Value| {
        let kind = crate::Kind::of(plural).unwrap();
        let media_type = "application/strategic-merge-patch+json";
        super::patched(kind, &object, media_type, patch.to_string().as_bytes()).unwrap()
    };
    assert_eq!(
        of(
            "nodes",
            json!({ "spec": { "podCIDRs": ["a"], "taints": [{ "key": "k" }] } }),
            json!({ "spec": { "podCIDRs": ["b"], "taints": [{ "key": "l" }] } }),
        ),
        json!({ "spec": { "podCIDRs": ["b", "a"], "taints": [{ "key": "l" }] } })
    );
    assert_eq!(
        of(
            "services",
            json!({ "spec": { "ports": [{ "port": 80, "name": "web" }] } }),
            json!({ "spec": { "ports": [{ "port": 80, "nodePort": 1 }] } }),
        ),
        json!({ "spec": { "ports": [{ "port": 80, "name": "web", "nodePort": 1 }] } })
    );
    assert_eq!(
        of(
            "serviceaccounts",
            json!({ "secrets": [{ "name": "a" }], "imagePullSecrets": [{ "name": "a" }] }),
            json!({ "secrets": [{ "name": "b" }], "imagePullSecrets": [{ "name": "b" }] }),
        ),
        json!({ "secrets": [{ "name": "b" }, { "name": "a" }], "imagePullSecrets": [{ "name": "b" }] })
    );
}
