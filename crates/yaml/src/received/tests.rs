//! Tests of `received`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Node {
    name: String,
    cordoned: bool,
    number: i32,
    ratio: f64,
    limit: Option<u16>,
    labels: BTreeMap<String, String>,
    images: Vec<Image>,
    port: Port,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Image {
    names: Vec<String>,
    size: u64,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Port {
    port: u16,
}

fn read_node(value: &Value) -> (Node, Vec<String>) {
    let read = read_json::<Node>(value.to_string().as_bytes()).unwrap();
    let left_out = read.left_out.iter().map(ToString::to_string).collect();
    (read.value, left_out)
}

#[test]
fn null_is_empty_wherever_it_stands() {
    let nulls = json!({
        "name": null, "cordoned": null, "number": null, "ratio": null, "limit": null,
        "labels": null, "images": null, "port": null,
    });
    assert_eq!(read_node(&nulls), (Node::default(), vec![]));
    let (node, left_out) = read_node(&json!({
        "labels": {"a": null, "b": "x"},
        "images": [{"names": null, "size": 1}, null, {"names": ["a", null], "size": null}],
        "port": {"port": null},
    }));
    assert_eq!(left_out, [""; 0]);
    assert_eq!((&*node.labels["a"], &*node.labels["b"]), ("", "x"));
    assert_eq!(node.images.len(), 3, "as Go counts them");
    assert_eq!(node.images[2].names, ["a", ""]);
}

#[test]
fn a_field_of_the_wrong_type_costs_that_field() {
    let (node, left_out) = read_node(&json!({
        "name": "a", "cordoned": "yes", "number": 1.5, "limit": 70000, "labels": {"a": 1, "b": "x"},
        "images": [{"names": "a", "size": 3}, 7, {"names": ["b"], "size": -1}],
        "port": [], "novelty": {"x": 1},
    }));
    assert_eq!(node.name, "a");
    assert_eq!(node.labels.len(), 1);
    assert_eq!(node.images[0].size, 3);
    assert_eq!(node.images[1].names, ["b"]);
    let mut fields: Vec<&str> = left_out
        .iter()
        .filter_map(|text| Some(text.split_once(": ")?.0))
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "cordoned",
            "images[0].names",
            "images[1]",
            "images[1].size",
            "labels.a",
            "limit",
            "number",
            "port"
        ]
    );
    assert!(
        left_out.contains(&"cordoned: expected a boolean, found the string \"yes\"".to_owned()),
        "{left_out:?}"
    );
}

#[test]
fn a_list_in_which_everything_is_wrong_is_left_out_after_a_few_tries() {
    let images: Vec<Value> = (0..1000)
        .map(|_| json!({"names": 1, "size": "x"}))
        .collect();
    let (node, left_out) = read_node(&json!({"name": "a", "images": images}));
    assert_eq!((node.name.as_str(), node.images.len()), ("a", 0));
    assert_eq!(left_out.len(), 2 * ONE_BY_ONE + 1);
    assert!(
        left_out[2 * ONE_BY_ONE].starts_with("images: "),
        "{left_out:?}"
    );
}

#[test]
fn what_is_nothing_of_the_kind_is_refused() {
    for text in ["", "{", "1", "\"a\"", "{\"name\": }"] {
        assert!(read_json::<Node>(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_field_that_occurs_twice_counts_as_it_was_written_last() {
    let read = read_json::<Node>(br#"{"name": "a", "name": "b"}"#).unwrap();
    assert_eq!(read.value.name, "b");
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    let read = read_json::<Node>(b"{\"name\": \"a\xff\"}").unwrap();
    assert_eq!(read.value.name, "a\u{fffd}");
}

#[test]
fn raw_json_values_stay_unchanged() {
    #[derive(Deserialize)]
    struct Kept {
        #[serde(default)]
        list: Vec<String>,
        raw: Box<RawValue>,
    }
    let read = read_json::<Kept>(br#"{"list": null, "raw": {"b":[null,1.0]}}"#).unwrap();
    assert!(read.value.list.is_empty());
    assert_eq!(read.value.raw.get(), r#"{"b":[null,1.0]}"#);
}
