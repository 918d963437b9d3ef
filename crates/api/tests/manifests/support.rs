//! Shortcuts that the tests share.

use jiff::Timestamp;
use rubelet_api::{
    manifest::{self, RawPod},
    parse::{FieldError, ParseContext, parse},
    pod::{Pod, PodSource},
};
use serde_json::{Value, json};

pub(crate) fn context() -> ParseContext<'static> {
    ParseContext {
        node_name: "Node1",
        source: PodSource::File,
        origin: "/etc/kubernetes/manifests/a.yaml",
        adopted_uid: None,
        now: "2026-11-21T07:08:09.5Z"
            .parse::<Timestamp>()
            .expect("it is RFC 3339"),
    }
}

/// The only pod of a manifest without mistakes in its form.
pub(crate) fn raw(text: &str) -> RawPod {
    let mut file = manifest::decode(text);
    assert_eq!(file.pods.len(), 1, "{text}");
    file.pods
        .remove(0)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn parsed(text: &str) -> Pod {
    parse(raw(text), &context()).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"))
}

/// All mistakes of the only pod, without their places.
pub(crate) fn mistakes(text: &str) -> Vec<String> {
    let errors = parse(raw(text), &context()).map(|_| ()).expect_err(text);
    errors
        .into_iter()
        .map(|error| {
            FieldError {
                position: None,
                ..error
            }
            .to_string()
        })
        .collect()
}

/// A pod with one container.
pub(crate) fn small() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "main", "image": "busybox:1.36"}]},
    })
}

/// The small pod with `value` set at `pointer`; objects on the way are made.
pub(crate) fn with(pointer: &str, value: Value) -> Value {
    let mut pod = small();
    set(&mut pod, pointer, value);
    pod
}

pub(crate) fn set(target: &mut Value, pointer: &str, value: Value) {
    let mut target = target;
    for step in pointer.trim_start_matches('/').split('/') {
        target = match step.parse::<usize>() {
            Ok(index) => &mut target[index],
            Err(_) => &mut target[step],
        };
    }
    *target = value;
}
