//! The downward API: what a pod may see of itself, as variables and as files.

use crate::{
    container::{Container, FieldPath, ResourceField, ResourceName},
    pod::{Pod, StringMap},
    resources::{Bytes, MilliCpu, ResourceAmounts},
    volume::DownwardContent,
};

/// What pods of this node can use; stands in for a missing limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocatable {
    /// Thousandths of a core.
    pub cpu: MilliCpu,
    /// Bytes of memory.
    pub memory: Bytes,
}

/// A `resourceFieldRef` that names no container of the pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("container {container} not found")]
pub struct NoSuchContainer {
    /// The name.
    pub container: Box<str>,
}

/// The content of a file.
///
/// # Errors
/// See [`NoSuchContainer`].
pub fn content(
    pod: &Pod,
    content: &DownwardContent,
    allocatable: Allocatable,
) -> Result<String, NoSuchContainer> {
    Ok(match content {
        DownwardContent::Labels => lines(&pod.labels),
        DownwardContent::Annotations => lines(&pod.annotations),
        // Others are refused when the pod is read.
        DownwardContent::Field(path) => metadata(pod, path).unwrap_or_default(),
        DownwardContent::Resource(field) => resource(pod, None, field, allocatable)?,
    })
}

/// The value of a field of the metadata; `None` for other fields. A label or annotation that is
/// missing is empty.
#[must_use]
pub fn metadata(pod: &Pod, path: &FieldPath) -> Option<String> {
    let from = |map: &StringMap, key: &str| map.get(key).map(ToString::to_string);
    match path {
        FieldPath::Name => Some(pod.name.name.to_string()),
        FieldPath::Namespace => Some(pod.name.namespace.to_string()),
        FieldPath::Uid => Some(pod.uid.to_string()),
        FieldPath::Label(key) => Some(from(&pod.labels, key).unwrap_or_default()),
        FieldPath::Annotation(key) => Some(from(&pod.annotations, key).unwrap_or_default()),
        FieldPath::NodeName
        | FieldPath::ServiceAccountName
        | FieldPath::HostIp
        | FieldPath::HostIps
        | FieldPath::PodIp
        | FieldPath::PodIps => None,
    }
}

/// A request or limit in units of the divisor, rounded up. `own` is the container that asks, where
/// the reference names none.
///
/// # Errors
/// See [`NoSuchContainer`].
pub fn resource(
    pod: &Pod,
    own: Option<&Container>,
    field: &ResourceField,
    allocatable: Allocatable,
) -> Result<String, NoSuchContainer> {
    let named = field.container.as_deref();
    let container = match named {
        Some(name) => pod.spec.container(name),
        None => own,
    };
    let container = container.ok_or_else(|| NoSuchContainer {
        container: named.unwrap_or_default().into(),
    })?;
    let resources = &container.resources;
    // A limit of 0 means no limit.
    let limit = |amount: Option<u64>, otherwise: u64| {
        let set = amount.filter(|&amount| amount > 0);
        u128::from(set.unwrap_or(otherwise))
    };
    let request = |amount: Option<u64>| u128::from(amount.unwrap_or(0));
    // Before that of the node comes the pod's own.
    let pod_limit = |take: fn(&ResourceAmounts) -> Option<u64>, otherwise: u64| {
        let own = pod
            .spec
            .resources
            .as_ref()
            .and_then(|own| take(&own.limits));
        own.filter(|&amount| amount > 0).unwrap_or(otherwise)
    };
    let cpu = pod_limit(|limits| limits.cpu, allocatable.cpu);
    let memory = pod_limit(|limits| limits.memory, allocatable.memory);
    let milli = match field.resource {
        ResourceName::LimitsCpu => limit(resources.limits.cpu, cpu),
        ResourceName::LimitsMemory => limit(resources.limits.memory, memory) * 1000,
        ResourceName::RequestsCpu => request(resources.requests.cpu),
        ResourceName::RequestsMemory => request(resources.requests.memory) * 1000,
    };
    Ok(milli.div_ceil(field.divisor_milli.max(1)).to_string())
}

/// One line `key="value"` for each entry, without a newline after the last.
fn lines(map: &StringMap) -> String {
    let mut text = String::new();
    for (key, value) in map {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(key);
        text.push('=');
        quote(value, &mut text);
    }
    text
}

/// Writes a text as Go writes one in its sources: what is not printable becomes an escape.
fn quote(value: &str, text: &mut String) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\x07' => text.push_str("\\a"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x0b' => text.push_str("\\v"),
            _ if is_printable(letter) => text.push(letter),
            _ => {
                let code = u32::from(letter);
                text.push_str(&match code {
                    0..0x80 => format!("\\x{code:02x}"),
                    0x80..0x1_0000 => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    text.push('"');
}

fn is_printable(letter: char) -> bool {
    // Behind another letter, so that a combining mark counts as printable.
    let pair: String = ['x', letter].into_iter().collect();
    pair.escape_debug().nth(1) == Some(letter) || letter == '\''
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_sorted_lines_with_quoted_values() {
        let map: StringMap = [
            ("zone", "eu\n\"1\""),
            ("app", "a\\b"),
            ("odd", "é\u{7f}\u{a0}'\u{301}"),
        ]
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
        assert_eq!(
            lines(&map),
            "app=\"a\\\\b\"\nodd=\"é\\x7f\\u00a0'\u{301}\"\nzone=\"eu\\n\\\"1\\\"\""
        );
        assert_eq!(lines(&StringMap::new()), "");
    }
}
