//! Protobuf encoding: hand-written bytes, and round trips of every field of every kind.

use serde_json::{Map, json};

use super::{
    schema::{Field, Shape, Type, message, of_kind},
    *,
};
use crate::{KINDS, base64};

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    field.extend(bytes);
    field
}

fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [
        MAGIC.to_vec(),
        field(1, &meta),
        field(2, raw),
        field(3, b""),
        field(4, b""),
    ]
    .concat()
}

#[test]
fn a_config_map_has_the_expected_bytes() {
    let metadata = field(1, b"cm");
    let pair = |key: &[u8], value: &[u8]| [field(1, key), field(2, value)].concat();
    let raw = [
        field(1, &metadata),
        field(2, &pair(b"a", b"1")),
        field(2, &pair(b"b", b"")),
        field(3, &pair(b"c", b"\x00")),
        vec![4 << 3, 1],
    ]
    .concat();
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "cm" },
        "data": { "a": "1", "b": "" }, "binaryData": { "c": "AA==" }, "immutable": true,
    });
    let bytes = body("v1", "ConfigMap", &raw);
    assert_eq!(read(&bytes).unwrap(), object);
    assert_eq!(write(&object).unwrap(), bytes);
}

#[test]
fn times_quantities_and_ports_have_their_own_messages() {
    // 2026-01-01T00:00:00Z is 1767225600 s, in seven bits each: 0x80 0xf2 0xd6 0xca 0x06.
    let seconds = [0x08, 0x80, 0xf2, 0xd6, 0xca, 0x06];
    // 5000 ns: 0x88 0x27.
    let time = [&seconds[..], &[0x10, 0x88, 0x27]].concat();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": { "renewTime": "2026-01-01T00:00:00.000005Z" },
    });
    let bytes = body(
        "coordination.k8s.io/v1",
        "Lease",
        &field(2, &field(4, &time)),
    );
    assert_eq!(write(&lease).unwrap(), bytes);
    assert_eq!(read(&bytes).unwrap(), lease);
    // A port by name and one by number; a quantity; the fields of a probe's handler.
    let probe = |port: Value| {
        json!({ "apiVersion": "v1", "kind": "Pod", "spec": { "containers": [{
            "name": "a", "livenessProbe": { "tcpSocket": { "port": port } },
            "resources": { "limits": { "cpu": "100m" } },
        }] } })
    };
    for (port, wire) in [
        (json!("web"), [vec![0x08, 1], field(3, b"web")].concat()),
        (json!(80), vec![0x08, 0, 0x10, 80]),
    ] {
        let handler = field(1, &field(3, &field(1, &wire)));
        let limits = field(
            1,
            &[field(1, b"cpu"), field(2, &field(1, b"100m"))].concat(),
        );
        let container = [field(1, b"a"), field(8, &limits), field(10, &handler)].concat();
        let bytes = body("v1", "Pod", &field(2, &field(2, &container)));
        assert_eq!(write(&probe(port.clone())).unwrap(), bytes, "{port}");
        assert_eq!(read(&bytes).unwrap(), probe(port));
    }
}

/// An object with all fields of a message, down to a limited depth.
fn full(name: &str, depth: usize) -> Value {
    let mut object = Map::new();
    for field in message(name).unwrap() {
        let Some(value) = sample(field, depth) else {
            continue;
        };
        match field.name {
            None => object.extend(value.as_object().cloned().unwrap()),
            Some(name) => {
                let value = match field.shape {
                    Shape::One => value,
                    Shape::List => json!([value, value]),
                    Shape::Map => json!({ "a": value, "b": value }),
                };
                object.insert(name.to_owned(), value);
            }
        }
    }
    Value::Object(object)
}

fn sample(field: &Field, depth: usize) -> Option<Value> {
    Some(match &field.kind {
        Type::Text => "text".into(),
        Type::Number => json!(-7),
        Type::Flag => false.into(),
        Type::Bytes => base64::encode(b"\x00\xff").into(),
        Type::Time => "2026-03-01T12:00:00Z".into(),
        Type::MicroTime => "2026-03-01T12:00:00.000001Z".into(),
        Type::Quantity => "1500Mi".into(),
        Type::IntOrString => "web".into(),
        Type::Json => json!({ "f:a": {} }),
        Type::Texts => json!(["x", "y"]),
        Type::Message(_) if depth == 0 => return None,
        Type::Message(name) => full(name, depth - 1),
    })
}

#[test]
fn every_field_of_every_kind_survives_a_round_trip() {
    for kind in KINDS {
        let api_version = kind.api_version();
        let name = match of_kind(&api_version, kind.kind) {
            Some(found) if std::ptr::eq(found, message(kind.kind).unwrap_or(found)) => {
                kind.kind.to_owned()
            }
            _ => format!("{}.{}", kind.group.split('.').next().unwrap(), kind.kind),
        };
        if message(&name).is_none() {
            continue;
        }
        let mut object = full(&name, 6);
        object["apiVersion"] = api_version.as_str().into();
        object["kind"] = kind.kind.into();
        assert_eq!(read(&write(&object).unwrap()).unwrap(), object, "{name}");
        let mut item = object.clone();
        let fields = item.as_object_mut().unwrap();
        fields.retain(|key, _| !["apiVersion", "kind"].contains(&key.as_str()));
        let list = json!({
            "apiVersion": api_version, "kind": format!("{}List", kind.kind),
            "metadata": { "resourceVersion": "7", "continue": "x", "remainingItemCount": 3 },
            "items": [item, item],
        });
        assert_eq!(read(&write(&list).unwrap()).unwrap(), list, "{name}");
    }
    let error = crate::StatusError::not_found(&KINDS[0], "x").to_json();
    assert_eq!(read(&write(&error).unwrap()).unwrap(), error);
}

#[test]
fn invalid_bodies_and_other_kinds_are_refused() {
    let good = write(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web" },
        "spec": { "containers": [{ "name": "a" }] },
    }))
    .unwrap();
    for end in 0..good.len() {
        // A truncated body must not cause a panic.
        let _ = read(&good[..end]);
    }
    assert!(read(b"{}").is_err());
    let refused = read(&body("apps/v1", "Deployment", b"")).unwrap_err();
    assert!(refused.contains("Deployment"), "{refused}");
    assert_eq!(
        write(&json!({ "apiVersion": "apps/v1", "kind": "Deployment" })),
        None
    );
}

#[test]
fn an_event_of_a_watch_is_a_frame_with_its_length() {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } });
    let bytes = frame("ADDED", &namespace).unwrap();
    let object = body("v1", "Namespace", &field(1, &field(1, b"a")));
    let event = [field(1, b"ADDED"), field(2, &field(1, &object))].concat();
    let length = u32::try_from(event.len()).unwrap().to_be_bytes();
    assert_eq!(bytes, [&length[..], &event].concat());
}
