//! Tests of `merge`.

use super::{assign, merge};
use crate::origins::{Origin, Origins};
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

#[test]
fn the_examples_of_rfc_7396_hold() {
    for (target, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        let mut merged = object(target);
        let origin = |_: &str| Origin::Default;
        merge(
            &mut merged,
            &object(patch),
            "",
            &mut Origins::default(),
            &origin,
        );
        assert_eq!(Value::Object(merged), expected);
    }
}

#[test]
fn the_origin_of_each_value_is_its_last_writer() {
    let mut target = Map::new();
    let mut origins = Origins::default();
    let mut apply = |patch: Value, name: &'static str| {
        let origin = move |_: &str| Origin::Flag { name };
        merge(&mut target, &object(patch), "", &mut origins, &origin);
    };
    apply(
        json!({"a": {"x": 1, "y": 1}, "b": [1], "c": 1, "d": {}}),
        "one",
    );
    apply(
        json!({"a": {"y": 2}, "b": [2], "c": null, "d": {"z": 1}}),
        "two",
    );
    let found: Vec<String> = origins
        .iter()
        .map(|(path, origin)| format!("{path} {origin}"))
        .collect();
    assert_eq!(
        found,
        [
            "a.x flag --one",
            "a.y flag --two",
            "b flag --two",
            "d.z flag --two"
        ]
    );
}

#[test]
fn assigning_creates_missing_parent_mappings() {
    let mut target = object(json!({"a": {"b": 1}}));
    assign(&mut target, "a.c.d", json!(2));
    assign(&mut target, "e", json!(3));
    assert_eq!(
        Value::Object(target),
        json!({"a": {"b": 1, "c": {"d": 2}}, "e": 3})
    );
}
