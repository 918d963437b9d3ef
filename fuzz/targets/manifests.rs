//! A manifest: from its text to compact pods, and the same pods again from what was read.

#![no_main]

use std::collections::BTreeSet;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use rubelet_api::{
    hash::content_hash,
    manifest::{RawPod, decode, decode_bytes},
    parse::{FieldError, ParseContext, parse},
    pod::{Pod, PodSource},
};
use rubelet_yaml::to_yaml;

fuzz_target!(|data: &[u8]| {
    // YAML knows two characters that end a line.
    let lines = 1 + data.iter().filter(|byte| b"\r\n".contains(byte)).count();
    for pod in decode_bytes(data).pods {
        match pod {
            Ok(raw) => read_again(raw),
            Err(error) => {
                assert!(!error.errors.is_empty(), "an error says what is wrong");
                for error in &error.errors {
                    let line = error.position.map_or(1, |position| position.line);
                    assert!((1..=lines).contains(&line), "line {line} of {lines}");
                }
            }
        }
    }
});

/// What was read is the same pod when it is written as YAML, and as JSON.
fn read_again(raw: RawPod) {
    let mut value = raw.value().clone();
    let hash = content_hash(&value);
    let whole = value.get("kind").is_some() && value.get("apiVersion").is_some();
    let first = parse(raw, &context());
    // An item of a list may leave out its type.
    value["apiVersion"] = "v1".into();
    value["kind"] = "Pod".into();
    let from_yaml = parse_one(&to_yaml(&value));
    let from_json = parse_one(&value.to_string());
    assert_eq!(from_yaml.0, from_json.0, "one content has one hash");
    assert_same(&from_yaml.1, &from_json.1);
    if whole {
        assert_eq!(from_json.0, hash);
        assert_same(&first, &from_json.1);
    }
}

type Parsed = Result<Pod, Vec<FieldError>>;

fn parse_one(text: &str) -> (String, Parsed) {
    let mut pods = decode(text).pods;
    let raw = match (pods.pop(), pods.pop()) {
        (Some(Ok(raw)), None) => raw,
        other => panic!("what was read once is read again: {other:?}\n{text}"),
    };
    (content_hash(raw.value()), parse(raw, &context()))
}

/// Whether both ask for the same. Their JSON may differ in the order of its fields.
fn is_same(one: &Pod, other: &Pod) -> bool {
    one.uid == other.uid
        && one.name == other.name
        && one.source == other.source
        && one.generation == other.generation
        && one.deletion == other.deletion
        && one.sandbox_definition == other.sandbox_definition
        && one.labels == other.labels
        && one.annotations == other.annotations
        && one.spec == other.spec
        && one.resize_infeasible == other.resize_infeasible
}

fn assert_same(one: &Parsed, other: &Parsed) {
    match (one, other) {
        (Ok(one), Ok(other)) => assert!(is_same(one, other), "{one:?}\n{other:?}"),
        (Err(one), Err(other)) => {
            let texts = |errors: &[FieldError]| {
                // Their order is that of the text, and JSON sorts its fields.
                let pairs = errors.iter();
                pairs
                    .map(|error| (error.field.clone(), error.message.clone()))
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(texts(one), texts(other));
        }
        other => panic!("accepted once and refused once: {other:?}"),
    }
}

fn context() -> ParseContext<'static> {
    ParseContext {
        node_name: "node",
        source: PodSource::File,
        origin: "/etc/kubernetes/manifests/a.yaml",
        adopted_uid: None,
        now: Timestamp::UNIX_EPOCH,
    }
}
