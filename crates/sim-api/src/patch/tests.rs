//! Patches: the behaviour that upstream documents, and agreement with the product's own server.

mod random;
mod strategic;

use serde_json::json;

use super::*;

fn after(object: &Value, media_type: &str, patch: &Value) -> Result<Value, StatusError> {
    let pods = Kind::of("pods").unwrap();
    let media_type = format!("application/{media_type}+json");
    patched(pods, object, &media_type, patch.to_string().as_bytes())
}

#[test]
fn a_json_patch_is_applied_in_order_or_not_at_all() {
    let object = json!({ "a": { "b": [1, 2] }, "c/d": "x", "n": null });
    for (patch, wanted) in [
        (
            json!([{ "op": "add", "path": "/a/b/-", "value": 3 }, { "op": "remove", "path": "/a/b/0" }]),
            Some(json!({ "a": { "b": [2, 3] }, "c/d": "x", "n": null })),
        ),
        (
            json!([{ "op": "test", "path": "/c~1d", "value": "x" }, { "op": "move", "from": "/c~1d", "path": "/e" }]),
            Some(json!({ "a": { "b": [1, 2] }, "e": "x", "n": null })),
        ),
        (
            json!([{ "op": "copy", "from": "/a/b/1", "path": "/a/b/0" }]),
            Some(json!({ "a": { "b": [2, 1, 2] }, "c/d": "x", "n": null })),
        ),
        // What upstream's library accepts beyond the RFC.
        (
            json!([{ "op": "replace", "path": "/a/new", "value": 1 }]),
            Some(json!({ "a": { "b": [1, 2], "new": 1 }, "c/d": "x", "n": null })),
        ),
        (
            json!([{ "op": "test", "path": "/missing", "value": null }]),
            Some(object.clone()),
        ),
        (
            json!([{ "op": "copy", "from": "/missing", "path": "/a" }]),
            Some(json!({ "a": null, "c/d": "x", "n": null })),
        ),
        (
            json!([{ "op": "test", "path": "/missing", "value": 1 }]),
            None,
        ),
        (json!([{ "op": "remove", "path": "/missing" }]), None),
        (json!([{ "op": "add", "path": "/a/b/7", "value": 1 }]), None),
        (
            json!([{ "op": "replace", "path": "/a/b/7", "value": 1 }]),
            None,
        ),
        (json!([{ "op": "add", "path": "/x/y", "value": 1 }]), None),
        (
            json!([{ "op": "add", "path": "/z", "value": 1 }, { "op": "test", "path": "/z", "value": 2 }]),
            None,
        ),
    ] {
        let result = after(&object, "json-patch", &patch);
        let refused = result
            .as_ref()
            .map_err(|error| (error.code, error.message.as_str()));
        let wanted = wanted.as_ref().ok_or((
            422,
            "the server rejected our request due to an error in our request",
        ));
        assert_eq!(refused, wanted, "{patch}");
    }
}

#[test]
fn a_merge_patch_replaces_lists_and_removes_nulls() {
    let object = json!({ "a": { "b": [1, 2], "c": 1 }, "d": 1 });
    let patch = json!({ "a": { "b": [3], "c": null }, "e": { "f": null, "g": 1 } });
    assert_eq!(
        after(&object, "merge-patch", &patch).unwrap(),
        json!({ "a": { "b": [3] }, "d": 1, "e": { "g": 1 } })
    );
}

#[test]
fn an_invalid_patch_is_refused_with_upstreams_codes() {
    let many = vec![json!({ "op": "test", "path": "/a", "value": 1 }); 10_001];
    let double = json!({ "op": "copy", "from": "/l", "path": "/l/-" });
    let text = "x".repeat(1000);
    for (object, media_type, patch, code) in [
        (json!({}), "json-patch", json!({}), 400),
        (
            json!({}),
            "json-patch",
            json!([{ "op": "grow", "path": "/a" }]),
            400,
        ),
        (json!({ "a": 1 }), "json-patch", Value::Array(many), 413),
        (
            json!({ "l": [text] }),
            "json-patch",
            Value::Array(vec![double; 20]),
            422,
        ),
        (json!({}), "merge-patch", json!([1]), 400),
        (json!({}), "strategic-merge-patch", json!(1), 400),
        (json!({}), "apply-patch", json!({}), 415),
    ] {
        let error = after(&object, media_type, &patch).unwrap_err();
        assert_eq!(error.code, code, "{media_type}: {error}");
    }
}
