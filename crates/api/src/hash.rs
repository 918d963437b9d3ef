//! Hashes by which pods and containers are recognised: upstream's, and those of definitions as the
//! user wrote them.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::{container::DefinitionHash, resources::QosClass};

/// FNV-1a in three widths; a writer that keeps only the hash.
macro_rules! fnv {
    ($name:ident, $word:ty, $offset:literal, $prime:literal) => {
        struct $name($word);

        impl $name {
            const fn new() -> Self {
                Self($offset)
            }
        }

        impl Write for $name {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                for byte in bytes {
                    self.0 = (self.0 ^ <$word>::from(*byte)).wrapping_mul($prime);
                }
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

fnv!(Fnv32, u32, 0x811c_9dc5, 0x0100_0193);
fnv!(Fnv64, u64, 0xcbf2_9ce4_8422_2325, 0x0000_0100_0000_01b3);
fnv!(
    Fnv128,
    u128,
    0x6c62_272e_07bb_0142_62b8_2175_6295_c58d,
    0x0000_0000_0100_0000_0000_0000_0000_013b
);

const INFALLIBLE: &str = "a hasher takes every byte";

/// Upstream's container hash: FNV-1a 32 in lower hex without padding. Only name and image take part.
/// It stands in the annotation `io.kubernetes.container.hash`; a container whose annotation differs
/// belongs to another definition.
#[must_use]
pub fn container_hash(name: &str, image: &str) -> String {
    let text = format!(
        "{{\"image\":{},\"name\":{}}}",
        go_json(image),
        go_json(name)
    );
    let mut hasher = Fnv32::new();
    hasher.write_all(b"([]uint8)[").expect(INFALLIBLE);
    for (index, byte) in text.bytes().enumerate() {
        let blank = if index == 0 { "" } else { " " };
        write!(hasher, "{blank}{byte}").expect(INFALLIBLE);
    }
    hasher.write_all(b"]").expect(INFALLIBLE);
    format!("{:x}", hasher.0)
}

/// A JSON string as Go's encoder writes it, which escapes what browsers might misread.
fn go_json(text: &str) -> String {
    let mut quoted = Value::from(text).to_string();
    for (plain, escaped) in [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ] {
        if quoted.contains(plain) {
            quoted = quoted.replace(plain, escaped);
        }
    }
    quoted
}

/// 128 bits of a manifest's content as 32 hex digits, for `kubernetes.io/config.hash`. The order of
/// keys, comments and the choice of YAML or JSON make no difference; `status` does not take part.
#[must_use]
pub fn content_hash(written: &Value) -> String {
    let mut hasher = Fnv128::new();
    match written {
        Value::Object(fields) => write_fields(fields, &mut hasher, |key| key != "status"),
        other => write_canonical(other, &mut hasher),
    }
    format!("{:032x}", hasher.0)
}

/// The UID of a static pod that names none: a hash of who it is, not of what it holds, so that an
/// edited manifest keeps it. 32 lower-case hex digits, the form of upstream's static UIDs.
pub(crate) fn static_uid(node: &str, source: &str, namespace: &str, name: &str) -> String {
    let mut hasher = Fnv128::new();
    for part in [node, source, namespace, name] {
        hasher.write_all(part.as_bytes()).expect(INFALLIBLE);
        hasher.write_all(b"\n").expect(INFALLIBLE);
    }
    format!("{:032x}", hasher.0)
}

/// Hash of one container as it was written.
pub(crate) fn container_definition(written: &Value) -> DefinitionHash {
    definition(written)
}

/// What of `spec` a sandbox gets when it is made and keeps until it is gone. Labels, annotations,
/// grace period, deadline, priority and restart policy may change under a running pod.
const FIXED_AT_SANDBOX_CREATION: [&str; 13] = [
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostname",
    "hostnameOverride",
    "securityContext",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "volumes",
];

/// Hash of what is fixed when the sandbox is created, as it was written. Beside the fields of the
/// specification these are the host ports, whether the sandbox must allow privileged containers,
/// and the quality of service, which decides where the pod's cgroup stands.
pub(crate) fn sandbox_definition(spec: &Value, qos: QosClass) -> DefinitionHash {
    let mut fixed = Map::new();
    for key in FIXED_AT_SANDBOX_CREATION {
        // An explicit false is the default.
        if let Some(value) = spec.get(key).filter(|value| **value != Value::Bool(false)) {
            fixed.insert(key.to_owned(), value.clone());
        }
    }
    if spec.get("hostUsers") == Some(&Value::Bool(false)) {
        fixed.insert("hostUsers".to_owned(), Value::Bool(false));
    }
    let containers = items(spec, "containers");
    let sidecars = items(spec, "initContainers").filter(|container| {
        container
            .get("restartPolicy")
            .is_some_and(|it| it == "Always")
    });
    let host_ports: Vec<&Value> = containers
        .clone()
        .chain(sidecars)
        .flat_map(|container| items(container, "ports"))
        .filter(|port| port.get("hostPort").and_then(Value::as_i64).unwrap_or(0) != 0)
        .collect();
    if !host_ports.is_empty() {
        fixed.insert("hostPorts".to_owned(), json!(host_ports));
    }
    let privileged = Some(&Value::Bool(true));
    if items(spec, "initContainers")
        .chain(containers)
        .any(|container| container.pointer("/securityContext/privileged") == privileged)
    {
        fixed.insert("privileged".to_owned(), Value::Bool(true));
    }
    fixed.insert("qos".to_owned(), qos.as_str().into());
    definition(&Value::Object(fixed))
}

fn items<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + Clone + use<'a> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn definition(value: &Value) -> DefinitionHash {
    let mut hasher = Fnv64::new();
    write_canonical(value, &mut hasher);
    DefinitionHash(format!("v1:{:016x}", hasher.0).into())
}

/// JSON with sorted keys, without blanks and without fields that are null.
fn write_canonical(value: &Value, out: &mut impl Write) {
    match value {
        Value::Object(fields) => write_fields(fields, out, |_| true),
        Value::Array(items) => {
            out.write_all(b"[").expect(INFALLIBLE);
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.write_all(b",").expect(INFALLIBLE);
                }
                write_canonical(item, out);
            }
            out.write_all(b"]").expect(INFALLIBLE);
        }
        scalar => serde_json::to_writer(out, scalar).expect(INFALLIBLE),
    }
}

fn write_fields(fields: &Map<String, Value>, out: &mut impl Write, keep: impl Fn(&str) -> bool) {
    let mut entries: Vec<(&String, &Value)> = fields
        .iter()
        .filter(|(key, value)| !value.is_null() && keep(key))
        .collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    out.write_all(b"{").expect(INFALLIBLE);
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",").expect(INFALLIBLE);
        }
        serde_json::to_writer(&mut *out, key).expect(INFALLIBLE);
        out.write_all(b":").expect(INFALLIBLE);
        write_canonical(value, out);
    }
    out.write_all(b"}").expect(INFALLIBLE);
}

#[cfg(test)]
mod tests {
    use super::{
        container_definition, container_hash, content_hash, sandbox_definition, static_uid,
    };
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
}
