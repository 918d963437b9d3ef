//! Fields of the messages. The tables in `messages/` are data: number, name in JSON and type of each field,
//! from the API's published `.proto` files of Kubernetes 1.36.
//!
//! Types: `s` text, `n` whole number, `b` boolean, `y` bytes (base64 in JSON), `time` and `micro` (texts in
//! JSON), `quantity`, `intstr`, `fields` (JSON inside), `texts` (a list of them), or a message; in `[]` a
//! list, in `{}` a map from texts. A field named `^` contains fields that in JSON belong to the object
//! itself.

use std::{collections::BTreeMap, sync::OnceLock};

use crate::KINDS;

/// The fields of a message, by number.
pub(super) type Message = Vec<Field>;

/// A field of a message.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) number: u64,
    /// The name in JSON; `None` if its fields belong to the object itself.
    pub(super) name: Option<&'static str>,
    pub(super) shape: Shape,
    pub(super) kind: Type,
}

/// Multiplicity of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    List,
    Map,
}

/// Type of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Number,
    Flag,
    Bytes,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    Json,
    /// A list of strings as a single value, as in a map.
    Texts,
    Message(String),
}

const TABLES: [&str; 6] = [
    include_str!("messages/core.txt"),
    include_str!("messages/groups.txt"),
    include_str!("messages/meta.txt"),
    include_str!("messages/pod_spec.txt"),
    include_str!("messages/pod_status.txt"),
    include_str!("messages/volumes.txt"),
];

/// The fields of a message.
pub(super) fn message(name: &str) -> Option<&'static Message> {
    static MESSAGES: OnceLock<BTreeMap<String, Message>> = OnceLock::new();
    MESSAGES.get_or_init(read).get(name)
}

/// The message of a kind. If two groups have a kind of this name, the name of the newer one's message begins
/// with the group.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Message> {
    let group = api_version.split(['.', '/']).next().unwrap_or_default();
    message(&format!("{group}.{kind}")).or_else(|| message(kind))
}

fn read() -> BTreeMap<String, Message> {
    let mut messages: BTreeMap<String, Message> = BTreeMap::new();
    for table in TABLES {
        let mut name = String::new();
        for line in table.lines() {
            match line.strip_prefix(' ') {
                None => name = line.trim_end_matches(':').to_owned(),
                Some(fields) => {
                    let fields = fields.split(';').filter_map(field);
                    messages.entry(name.clone()).or_default().extend(fields);
                }
            }
        }
        messages.entry(name).or_default();
    }
    for kind in KINDS {
        let group = kind.group.split('.').next().unwrap_or_default();
        let prefixed = format!("{group}.{}", kind.kind);
        let item = match messages.contains_key(&prefixed) {
            true => prefixed,
            false => kind.kind.to_owned(),
        };
        let list = vec![
            Field {
                number: 1,
                name: Some("metadata"),
                shape: Shape::One,
                kind: Type::Message("ListMeta".to_owned()),
            },
            Field {
                number: 2,
                name: Some("items"),
                shape: Shape::List,
                kind: Type::Message(item.clone()),
            },
        ];
        messages.insert(format!("{item}List"), list);
    }
    messages
}

/// A field such as `11 labels {s}`.
fn field(text: &'static str) -> Option<Field> {
    let mut words = text.split_whitespace();
    let (number, name, kind) = (words.next()?, words.next()?, words.next()?);
    let (shape, kind) = match kind.as_bytes().first()? {
        b'[' => (Shape::List, kind.trim_matches(['[', ']'])),
        b'{' => (Shape::Map, kind.trim_matches(['{', '}'])),
        _ => (Shape::One, kind),
    };
    Some(Field {
        number: number.parse().ok()?,
        name: Some(name).filter(|name| *name != "^"),
        shape,
        kind: match kind {
            "s" => Type::Text,
            "n" => Type::Number,
            "b" => Type::Flag,
            "y" => Type::Bytes,
            "time" => Type::Time,
            "micro" => Type::MicroTime,
            "quantity" => Type::Quantity,
            "intstr" => Type::IntOrString,
            "fields" => Type::Json,
            "texts" => Type::Texts,
            other => Type::Message(other.to_owned()),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_that_a_field_names_exists() {
        let messages = read();
        assert!(messages.len() > 200, "{}", messages.len());
        for (name, fields) in &messages {
            for field in fields {
                if let Type::Message(other) = &field.kind {
                    assert!(messages.contains_key(other), "{name} names {other}");
                }
            }
        }
        for table in TABLES {
            let fields = table.lines().filter(|line| line.starts_with(' '));
            for text in fields.flat_map(|line| line.split(';')) {
                assert!(text.trim().is_empty() || field(text).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn every_served_kind_has_a_message_and_a_list() {
        for kind in KINDS {
            let of = |name: &str| of_kind(&kind.api_version(), name).is_some();
            assert!(of(kind.kind), "{}", kind.kind);
            assert!(of(&format!("{}List", kind.kind)), "{}", kind.kind);
        }
    }
}
