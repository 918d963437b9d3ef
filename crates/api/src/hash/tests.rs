//! Tests of `hash`.

use super::{container_definition, container_hash, content_hash, sandbox_definition, static_uid};
use crate::resources::QosClass;
use serde_json::{Value, json};

#[test]
fn the_container_hash_is_upstreams() {
    assert_eq!(container_hash("test_container", "foo/image:v1"), "8e45cbd0");
    assert_ne!(container_hash("a", "b<c"), container_hash("a", "b\\u003cc"));
}

#[test]
fn order_of_keys_and_nulls_change_no_hash() {
    let one: Value =
        serde_json::from_str(r#"{"name":"a","image":"b","env":[{"name":"X","value":"1"}]}"#)
            .unwrap();
    let other: Value = serde_json::from_str(
        r#"{"image":"b","tty":null,"env":[{"value":"1","name":"X"}],"name":"a"}"#,
    )
    .unwrap();
    assert_eq!(container_definition(&one), container_definition(&other));
    assert_eq!(content_hash(&one), content_hash(&other));
    assert_eq!(content_hash(&one).len(), 32);
    assert!(container_definition(&one).0.starts_with("v1:"));
    assert_eq!(container_definition(&one).0.len(), 19);
}

#[test]
fn every_value_counts_in_the_definition_of_a_container() {
    let base = json!({"name": "a", "image": "b"});
    for other in [
        json!({"name": "a", "image": "c"}),
        json!({"name": "a", "image": "b", "args": ["x"]}),
        json!({"name": "a", "image": "b", "env": []}),
    ] {
        assert_ne!(
            container_definition(&base),
            container_definition(&other),
            "{other}"
        );
    }
}

#[test]
fn status_is_no_content() {
    let base = json!({"metadata": {"name": "a"}});
    let with_status = json!({"metadata": {"name": "a"}, "status": {"phase": "Running"}});
    assert_eq!(content_hash(&base), content_hash(&with_status));
}

#[test]
fn the_sandbox_changes_only_with_what_is_fixed_in_it() {
    let of = |spec: &Value| sandbox_definition(spec, QosClass::Burstable);
    let base =
        json!({"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 80}]}]});
    let with = |key: &str, value: Value| {
        let mut spec = base.clone();
        spec[key] = value;
        of(&spec)
    };
    for (key, value) in [
        ("hostNetwork", json!(false)),
        ("restartPolicy", json!("Never")),
        ("terminationGracePeriodSeconds", json!(3)),
        ("activeDeadlineSeconds", json!(3)),
        ("priority", json!(3)),
        (
            "containers",
            json!([{"name": "a", "image": "c", "ports": [{"containerPort": 81}]}]),
        ),
    ] {
        assert_eq!(with(key, value), of(&base), "{key}");
    }
    for (key, value) in [
        ("hostNetwork", json!(true)),
        ("hostname", json!("a")),
        ("volumes", json!([{"name": "v"}])),
        ("securityContext", json!({"runAsUser": 1})),
        (
            "containers",
            json!([{"ports": [{"containerPort": 80, "hostPort": 80}]}]),
        ),
        (
            "containers",
            json!([{"securityContext": {"privileged": true}}]),
        ),
    ] {
        assert_ne!(with(key, value), of(&base), "{key}");
    }
    assert_ne!(sandbox_definition(&base, QosClass::Guaranteed), of(&base));
}

#[test]
fn each_pod_of_each_source_has_its_own_uid() {
    let uid = static_uid("node", "file", "default", "a");
    assert_eq!(uid.len(), 32);
    assert_eq!(uid, static_uid("node", "file", "default", "a"));
    for (node, source, namespace, name) in [
        ("n", "file", "default", "a"),
        ("node", "http", "default", "a"),
        ("node", "file", "x", "a"),
        ("node", "file", "default", "b"),
    ] {
        assert_ne!(uid, static_uid(node, source, namespace, name));
    }
}
