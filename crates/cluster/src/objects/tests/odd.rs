//! Objects of pods in which anything is null, absent or of another type.

use rubelet_api::container::ObjectKind;
use rubelet_yaml::read_value;
use serde_json::{Value, json};
use sim_api::malformed::{with_nulls, with_wrong_type};

use super::super::wire::{WireObject, WireTokenRequest, object, runtime_class, service};

fn wire(value: &Value) -> WireObject {
    read_value(value).unwrap().value
}

fn metadata() -> Value {
    json!({"name": "a", "namespace": "b", "labels": {"c": "d"}, "resourceVersion": "7"})
}

/// What is made of such an object is the same for null and absent, and for a wrong type too.
fn same<T: PartialEq>(full: &Value, read: impl Fn(&Value) -> T) {
    for seed in 0..500 {
        let (nulls, absent) = with_nulls(seed, full, &[]);
        // Nothing of it may be printed: there are secrets in it.
        assert!(read(&nulls) == read(&absent), "seed {seed}: {nulls}");
        let (wrong, absent, pointer) = with_wrong_type(seed, full, &["/handler"]);
        assert!(read(&wrong) == read(&absent), "seed {seed}: {pointer}");
    }
}

#[test]
fn config_maps_and_secrets_are_read_whatever_is_odd_in_them() {
    let full = json!({
        "kind": "Secret", "metadata": metadata(), "type": "Opaque", "immutable": true,
        "data": {"a": "YQ==", "b": "Yg==", "empty": null}, "binaryData": {"c": "Yw=="},
    });
    same(&full, |value| object(ObjectKind::Secret, wire(value)));
    same(&full, |value| object(ObjectKind::ConfigMap, wire(value)));
}

#[test]
fn services_and_runtime_classes_are_read_whatever_is_odd_in_them() {
    let full = json!({
        "metadata": metadata(), "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [
            {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080}, {"port": 53, "protocol": "UDP"},
        ]},
    });
    same(&full, |value| service(wire(value)));
    let class = json!({"metadata": {"name": "kata"}, "handler": "kata"});
    same(&class, |value| runtime_class(wire(value)));
    for odd in [
        json!(7),
        json!(["kata"]),
        json!({"name": "kata"}),
        json!(true),
    ] {
        let class = json!({"metadata": {"name": "kata"}, "handler": odd});
        assert_eq!(
            runtime_class(wire(&class)).1,
            None,
            "not the default handler: {odd}"
        );
    }
}

#[test]
fn a_token_is_read_whatever_else_is_odd_in_the_answer() {
    let full = json!({
        "metadata": metadata(), "spec": {"audiences": ["a"], "expirationSeconds": 3600, "boundObjectRef": {}},
        "status": {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00Z"},
    });
    let keep = ["/status/token", "/status/expirationTimestamp"];
    let read = |value: &Value| {
        let answer = read_value::<WireTokenRequest>(value).unwrap().value;
        (answer.status.token, answer.spec.expiration_seconds)
    };
    for seed in 0..300 {
        let (nulls, absent) = with_nulls(seed, &full, &keep);
        assert_eq!(read(&nulls), read(&absent), "seed {seed}: {nulls}");
        let (wrong, absent, pointer) = with_wrong_type(seed, &full, &keep);
        assert_eq!(read(&wrong), read(&absent), "seed {seed}: {pointer}");
    }
    for odd in [json!(null), json!({}), json!({"token": ["t"]}), json!("t")] {
        let answer = json!({"status": odd});
        assert!(read_value::<WireTokenRequest>(&answer).is_err(), "{answer}");
    }
}
