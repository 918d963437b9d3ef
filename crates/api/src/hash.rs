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
/// It is in the annotation `io.kubernetes.container.hash`; a container whose annotation differs
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

/// The UID of a static pod without one: a hash of its identity, not of its content, so that an
/// edited manifest keeps it. 32 lower-case hex digits, the form of upstream's static UIDs.
pub(crate) fn static_uid(node: &str, source: &str, namespace: &str, name: &str) -> String {
    of_texts(&[node, source, namespace, name])
}

/// 128 bits of some texts, each of one line, as 32 lower-case hex digits.
pub(crate) fn of_texts(texts: &[&str]) -> String {
    let mut hasher = Fnv128::new();
    for text in texts {
        hasher.write_all(text.as_bytes()).expect(INFALLIBLE);
        hasher.write_all(b"\n").expect(INFALLIBLE);
    }
    format!("{:032x}", hasher.0)
}

/// Hash of one container as it was written.
pub(crate) fn container_definition(written: &Value) -> DefinitionHash {
    definition(written)
}

/// What of `spec` a sandbox gets when it is made and keeps until it is gone. Labels, annotations,
/// grace period, deadline, priority and restart policy may change under a running pod. Containers take
/// part in the resources of the pod, so it is made again with them.
const FIXED_AT_SANDBOX_CREATION: [&str; 14] = [
    "dnsConfig",
    "dnsPolicy",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostname",
    "hostnameOverride",
    "resources",
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
mod tests;
