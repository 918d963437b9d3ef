//! Where the variables of a container come from, and the errors for missing ones.

use std::sync::Arc;

use rubelet_api::{
    objects::{ConfigMap, ObjectData, PodObjects, Secret},
    parse::api_pod,
};
use serde_json::{Value, json};

use super::*;

fn pod(container: &Value) -> Pod {
    let mut main = container.clone();
    main["name"] = "main".into();
    main["image"] = "a".into();
    let pod = json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "web"}},
        "spec": {"serviceAccountName": "builder", "nodeName": "node1", "containers": [main]},
    });
    let parsed = api_pod(pod, "node1").unwrap();
    assert_eq!(parsed.unsupported, []);
    parsed.pod
}

fn data(entries: &[(&str, &[u8])]) -> ObjectData {
    let entries = entries.iter();
    entries
        .map(|(key, value)| ((*key).into(), Arc::from(*value)))
        .collect()
}

/// A config map `settings`, a secret `login` and one service.
fn objects() -> PodObjects {
    let settings = ConfigMap {
        data: data(&[("COLOR", b"red"), ("SIZE", b"1"), ("odd key", b"x")]),
        binary_data: data(&[("BLOB", b"\x00")]),
    };
    let login = Secret {
        kind: "Opaque".into(),
        data: data(&[("USER", b"ann"), ("SIZE", b"2"), ("RAW", b"\xff!")]),
    };
    PodObjects {
        config_maps: [("settings".into(), Arc::new(settings))].into(),
        secrets: [("login".into(), Arc::new(login))].into(),
        services: vec![
            ("KUBERNETES_SERVICE_HOST".into(), "10.96.0.1".into()),
            ("DB_SERVICE_HOST".into(), "10.96.0.9".into()),
        ],
        ..PodObjects::default()
    }
}

fn values(container: &Value) -> Result<Vec<(String, String)>, EnvError> {
    let pod = pod(container);
    let context = EnvContext {
        allocatable_cpu: 1500,
        files: EnvFiles::from([
            (
                ("shared".into(), "sub/env".into()),
                Some("USER='ann'\nREF='$(HOME)'\nEMPTY=''\n".to_owned()),
            ),
            (("shared".into(), "odd".into()), Some("USER=ann".to_owned())),
            (("shared".into(), "missing".into()), None),
        ]),
        ..EnvContext::default()
    };
    environment(&pod, &pod.spec.containers[0], &context, &objects())
}

/// The variables that are not those of services, as `NAME=value`.
#[track_caller]
fn own(container: &Value) -> Vec<String> {
    let values = values(container).unwrap();
    let own = values
        .into_iter()
        .filter(|(name, _)| !name.ends_with("_SERVICE_HOST"));
    own.map(|(name, value)| format!("{name}={value}")).collect()
}

#[test]
fn all_texts_of_an_object_come_first_and_later_ones_win() {
    let container = json!({
        "envFrom": [
            {"configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "login"}},
            {"prefix": "P_", "configMapRef": {"name": "settings"}},
            {"configMapRef": {"name": "missing", "optional": true}},
        ],
        "env": [
            {"name": "COLOR", "value": "blue, not $(COLOR)"},
            {"name": "BOTH", "value": "$(P_SIZE)-$(SIZE)-$(USER)"},
        ],
    });
    assert_eq!(
        own(&container),
        [
            "COLOR=blue, not red",
            "SIZE=2",
            "odd key=x",
            "RAW=\u{fffd}!",
            "USER=ann",
            "P_COLOR=red",
            "P_SIZE=1",
            "P_odd key=x",
            "BOTH=1-2-ann",
        ]
    );
}

#[test]
fn single_keys_are_drawn_and_optional_ones_may_be_missing() {
    let of = |kind: &str, name: &str, key: &str, optional: bool| {
        let reference = json!({"name": name, "key": key, "optional": optional});
        json!({"name": "A", "valueFrom": {kind: reference}})
    };
    for (variable, expected) in [
        (
            of("configMapKeyRef", "settings", "COLOR", false),
            Some("A=red"),
        ),
        (of("secretKeyRef", "login", "USER", false), Some("A=ann")),
        (of("configMapKeyRef", "settings", "none", true), None),
        (of("secretKeyRef", "none", "USER", true), None),
    ] {
        let expected: Vec<&str> = expected.into_iter().collect();
        assert_eq!(own(&json!({"env": [variable]})), expected, "{variable}");
    }
}

#[test]
fn a_variable_of_a_file_is_taken_as_it_is() {
    let of = |path: &str, key: &str, optional: bool| {
        let reference =
            json!({"volumeName": "shared", "path": path, "key": key, "optional": optional});
        json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": reference}}]})
    };
    assert_eq!(own(&of("sub/env", "USER", false)), ["A=ann"]);
    assert_eq!(own(&of("sub/env", "REF", false)), ["A=$(HOME)"]);
    for (path, key) in [
        ("sub/env", "NONE"),
        ("sub/env", "EMPTY"),
        ("missing", "USER"),
    ] {
        assert_eq!(own(&of(path, key, true)), [""; 0], "{path} {key}");
        let error = values(&of(path, key, false)).unwrap_err().to_string();
        let expected = format!(
            "environment variable key {key:?} not found in file {path:?} of the volume \"shared\""
        );
        assert_eq!(error, expected);
    }
    let error = values(&of("odd", "USER", true)).unwrap_err().to_string();
    assert_eq!(
        error,
        "couldn't parse env file \"odd\" of the volume \"shared\": line 1: the value must be \
         enclosed in single quotes"
    );
}

#[test]
fn what_is_missing_is_named_in_the_kubelets_words() {
    for (container, expected) in [
        (
            json!({"envFrom": [{"configMapRef": {"name": "x"}}]}),
            "configmap \"x\" not found",
        ),
        (
            json!({"envFrom": [{"secretRef": {"name": "x"}}]}),
            "secret \"x\" not found",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "k"}}}]}),
            "configmap \"x\" not found",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "BLOB"}}}]}),
            "couldn't find key BLOB in ConfigMap shop/settings",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "login", "key": "k"}}}]}),
            "couldn't find key k in Secret shop/login",
        ),
    ] {
        let error = values(&container).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn services_stand_behind_and_can_be_referred_to_and_replaced() {
    let container = json!({"env": [
        {"name": "URL", "value": "http://$(DB_SERVICE_HOST)"},
        {"name": "KUBERNETES_SERVICE_HOST", "value": "mine"},
    ]});
    let values = values(&container).unwrap();
    let values: Vec<(&str, &str)> = values.iter().map(|(a, b)| (&**a, &**b)).collect();
    assert_eq!(
        values,
        [
            ("URL", "http://10.96.0.9"),
            ("KUBERNETES_SERVICE_HOST", "mine"),
            ("DB_SERVICE_HOST", "10.96.0.9"),
        ]
    );
}

#[test]
fn fields_of_the_pod_and_its_resources_are_seen() {
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let resource = |name: &str| json!({"resourceFieldRef": {"resource": name, "divisor": "1m"}});
    for (source, expected) in [
        (field("spec.serviceAccountName"), "builder"),
        (field("metadata.namespace"), "shop"),
        (field("metadata.labels['app']"), "web"),
        (field("metadata.labels['none']"), ""),
        (resource("limits.cpu"), "1500"),
        (resource("requests.cpu"), "0"),
    ] {
        let container = json!({"env": [{"name": "A", "valueFrom": source}]});
        assert_eq!(own(&container), [format!("A={expected}")]);
    }
}
