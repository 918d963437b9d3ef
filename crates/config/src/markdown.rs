//! The reference pages and the help text, generated from the tables.

mod configuration;
mod flags;

pub use configuration::configuration_markdown;
pub use flags::{flags_help, flags_markdown};

use crate::field::{Effect, Field, each_leaf};
use crate::fields::KubeletConfiguration;
use crate::layer::RUBELET;
use crate::rubelet_options::RubeletOptions;
use serde_json::Value;

/// The field at `path`.
fn field_at(path: &str) -> Option<&'static Field> {
    let mut found = None;
    let mut look = |known: &str, field: &'static Field| {
        if known == path {
            found = Some(field);
        }
    };
    each_leaf(KubeletConfiguration::FIELDS, "", &mut look);
    each_leaf(RubeletOptions::FIELDS, RUBELET, &mut look);
    found
}

/// The help of a field, with its difference from the kubelet.
fn meaning(field: &Field) -> String {
    match field.effect {
        Effect::Partly(part) => format!("{} Today {part}.", field.help.trim()),
        Effect::Better(why) | Effect::Differs(why) => {
            let mut letters = why.chars();
            let first = letters
                .next()
                .map(|letter| letter.to_uppercase().to_string());
            let first = first.unwrap_or_default();
            format!("{} {first}{}.", field.help.trim(), letters.as_str())
        }
        Effect::Works | Effect::Cluster | Effect::NotYet => field.help.to_owned(),
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}

/// A value as it is written in a file. Empty if it is empty.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.is_empty() => String::new(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(fields) if fields.is_empty() => String::new(),
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| match value {
                Value::String(text) => format!("`{key}: {text}`"),
                other => format!("`{key}: {other}`"),
            };
            fields.iter().map(pair).collect::<Vec<_>>().join(", ")
        }
        other => format!("`{other}`"),
    }
}
