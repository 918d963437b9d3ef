//! No manifest makes the parser panic.

use proptest::prelude::*;
use rubelet_api::{
    fields::without_effect,
    manifest::{decode, decode_bytes},
    objects::references,
    parse::{api_pod, ephemeral_container, parse},
    wire::status_from_json,
};
use serde_json::{Value, json};

use crate::{
    api_pods::deployed,
    support::{context, parsed, small},
};

fn full() -> Value {
    rubelet_yaml::documents(include_str!("full.yaml")).expect("it is YAML")[0]
        .value()
        .clone()
}

/// Values that are wrong in most places, and right in some.
fn odd_value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-2i64..70_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[0-9.eE+-]{1,30}[a-zA-Z]{0,2}".prop_map(Value::from),
        "[a-z]{1,5}[./:@'\\[\\]-]{0,3}[a-z]{0,5}".prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}])),
        Just(json!({"name": "a"})),
        Just(json!([null, {"name": null}])),
    ]
}

fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(fields) => fields.values().map(nodes).sum(),
        _ => 0,
    }
}

/// Replaces the node that is reached after `left` steps through the tree.
fn replace(value: &mut Value, left: &mut usize, with: &Value) -> bool {
    if *left == 0 {
        *value = with.clone();
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, left, with)),
        Value::Object(fields) => fields.values_mut().any(|field| replace(field, left, with)),
        _ => false,
    }
}

fn consume(text: &str) {
    for raw in decode(text).pods.into_iter().flatten() {
        let idle = without_effect(raw.value());
        assert!(idle.iter().all(|idle| !idle.field.is_empty()));
        match parse(raw, &context()) {
            Ok(pod) => assert!(serde_json::from_str::<Value>(&pod.json).is_ok()),
            Err(errors) => assert!(errors.iter().all(|error| !error.message.is_empty())),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_manifest_is_parsed_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 1..5),
    ) {
        let mut pod = full();
        for (index, value) in &changes {
            let mut left = index.index(nodes(&pod));
            replace(&mut pod, &mut left, value);
        }
        consume(&pod.to_string());
        let base = parsed(&small().to_string());
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            if let Err(errors) = ephemeral_container(&container.to_string(), &base) {
                prop_assert!(errors.iter().all(|error| !error.message.is_empty()));
            }
        }
    }

    #[test]
    fn a_mutated_pod_of_the_api_server_is_taken_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), odd_value()), 1..5),
    ) {
        let mut pod = deployed();
        pod["spec"]["containers"].as_array_mut().expect("a list").extend(
            full()["spec"]["containers"].as_array().cloned().into_iter().flatten(),
        );
        for (index, value) in &changes {
            let mut left = index.index(nodes(&pod));
            replace(&mut pod, &mut left, value);
        }
        let _ = status_from_json(&pod["status"]);
        match api_pod(pod, "node1") {
            Ok(parsed) => {
                let _ = references(&parsed.pod);
                prop_assert!(serde_json::from_str::<Value>(&parsed.pod.json).is_ok());
            }
            Err(errors) => prop_assert!(errors.iter().all(|error| !error.message.is_empty())),
        }
    }

    #[test]
    fn a_damaged_file_is_parsed_or_refused(
        at in any::<prop::sample::Index>(),
        length in 0usize..40,
        junk in "[\\PC\n\t]{0,8}",
    ) {
        let text = include_str!("full.yaml");
        let mut damaged: String = text.chars().take(at.index(text.len())).collect();
        let rest: String = text.chars().skip(damaged.chars().count() + length).collect();
        damaged.push_str(&junk);
        consume(&damaged);
        damaged.push_str(&rest);
        consume(&damaged);
    }

    #[test]
    fn any_bytes_are_a_manifest_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = decode_bytes(&bytes);
        prop_assert!(file.note.is_some() || !file.pods.is_empty());
    }
}
