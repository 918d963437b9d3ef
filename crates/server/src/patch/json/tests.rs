//! Tests of `json`.

use serde_json::json;

use super::*;

fn patched(document: Value, patch: &Value) -> Result<Value, String> {
    let operations = read(patch.to_string().as_bytes()).map_err(|error| error.to_string())?;
    apply(document, &operations).map_err(|error| error.to_string())
}

#[test]
fn operations_follow_the_rfc() {
    let document = || json!({ "a": { "b": [1, 2] }, "c/d": "x", "e~f": 1 });
    for (patch, result) in [
        (
            json!([{ "op": "add", "path": "/a/b/-", "value": 3 }]),
            json!({ "a": { "b": [1, 2, 3] }, "c/d": "x", "e~f": 1 }),
        ),
        (
            json!([{ "op": "add", "path": "/a/b/1", "value": 9 }, { "op": "add", "path": "/g", "value": {} }]),
            json!({ "a": { "b": [1, 9, 2] }, "c/d": "x", "e~f": 1, "g": {} }),
        ),
        (
            json!([{ "op": "test", "path": "/c~1d", "value": "x" }, { "op": "remove", "path": "/c~1d" }, { "op": "replace", "path": "/e~0f", "value": null }]),
            json!({ "a": { "b": [1, 2] }, "e~f": null }),
        ),
        (
            json!([{ "op": "move", "from": "/a/b/0", "path": "/a/x" }, { "op": "copy", "from": "/a/b", "path": "/y" }]),
            json!({ "a": { "b": [2], "x": 1 }, "c/d": "x", "e~f": 1, "y": [2] }),
        ),
        (
            json!([{ "op": "replace", "path": "", "value": 1 }]),
            json!(1),
        ),
    ] {
        assert_eq!(patched(document(), &patch), Ok(result), "{patch}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_place() {
    for (patch, message) in [
        (
            json!([{ "op": "remove", "path": "/x" }]),
            "there is nothing at \"/x\"",
        ),
        (
            json!([{ "op": "remove", "path": "/a/7" }]),
            "there is nothing at \"/a/7\"",
        ),
        (
            json!([{ "op": "add", "path": "/a/01", "value": 1 }]),
            "there is nothing",
        ),
        (
            json!([{ "op": "add", "path": "/a/3", "value": 1 }]),
            "there is nothing",
        ),
        (
            json!([{ "op": "add", "path": "/x/y", "value": 1 }]),
            "there is nothing",
        ),
        (
            json!([{ "op": "replace", "path": "/x", "value": 1 }]),
            "there is nothing",
        ),
        (
            json!([{ "op": "test", "path": "/a/0", "value": 2 }]),
            "failed: it is 1",
        ),
        (
            json!([{ "op": "move", "from": "/a", "path": "/a/0" }]),
            "into itself",
        ),
        (
            json!([{ "op": "grow", "path": "/a" }]),
            "operation 0: \"op\" is \"grow\"",
        ),
        (
            json!([{ "op": "add", "path": "/a" }]),
            "\"value\" is missing",
        ),
        (
            json!([{ "op": "add", "path": "a", "value": 1 }]),
            "begin with a slash",
        ),
        (
            json!([{ "op": "copy", "path": "/a" }]),
            "\"from\" must be a text",
        ),
        (json!([1]), "operation 0"),
        (json!({}), "a list of operations"),
    ] {
        let error = patched(json!({ "a": [1] }), &patch).unwrap_err();
        assert!(error.contains(message), "{patch}: {error}");
    }
}

#[test]
fn copies_cannot_multiply_an_object_without_bound() {
    let double = json!({ "op": "copy", "from": "/l", "path": "/l/-" });
    let text = "x".repeat(1000);
    let twenty = Value::Array(vec![double; 20]);
    let error = patched(json!({ "l": [text] }), &twenty)
        .map(drop)
        .unwrap_err();
    assert_eq!(error, "the copies add more than 3145728 bytes");
    let once = json!([{ "op": "copy", "from": "/b", "path": "/a" }]);
    assert!(patched(json!({ "b": text }), &once).is_ok());
}

#[test]
fn moves_cannot_nest_an_object_without_bound() {
    let wrap = [
        json!({ "op": "add", "path": "/n", "value": {} }),
        json!({ "op": "move", "from": "/d", "path": "/n/d" }),
        json!({ "op": "move", "from": "/n", "path": "/d" }),
    ];
    let wrapped = |times: usize| {
        let patch = wrap.iter().cycle().take(3 * times).cloned().collect();
        patched(json!({ "d": 1 }), &patch)
    };
    assert!(wrapped(100).is_ok());
    assert_eq!(
        wrapped(3000).unwrap_err(),
        "the object would be nested more than 256 deep"
    );
    // What is moved to and fro does not count again and again.
    let mut to_and_fro = Vec::new();
    for _ in 0..1000 {
        to_and_fro.push(json!({ "op": "move", "from": "/a/b", "path": "/c" }));
        to_and_fro.push(json!({ "op": "move", "from": "/c", "path": "/a/b" }));
    }
    let document = json!({ "a": { "b": { "x": [1] } } });
    assert_eq!(patched(document.clone(), &to_and_fro.into()), Ok(document));
}

#[test]
fn a_failed_test_shows_the_beginning_of_what_is_there() {
    let patch = json!([{ "op": "test", "path": "/a", "value": 1 }]);
    let error = patched(json!({ "a": "\u{e9}".repeat(5000) }), &patch).unwrap_err();
    assert!(error.len() < 400 && error.ends_with("..."), "{error}");
}
