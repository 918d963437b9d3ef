//! Field selectors: terms `label=value`, `label==value` and `label!=value` that must all match.
//!
//! Source of the syntax, the labels and the texts: apimachinery's `fields.ParseSelector` and upstream's
//! `ToSelectableFields` and field label conversions.

use serde_json::Value;

use crate::{Kind, meta};

/// One term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) label: String,
    pub(super) value: String,
    pub(super) equal: bool,
}

/// Terms that must all match, and the pointers to their values.
#[derive(Debug, Clone)]
pub(super) struct FieldSelector(Vec<(&'static str, Term)>);

/// Boolean fields, which are never empty.
const BOOLEANS: [&str; 2] = ["/spec/hostNetwork", "/spec/unschedulable"];

impl FieldSelector {
    pub(super) fn parse(kind: &'static Kind, text: &str) -> Result<Self, String> {
        let terms = terms(text)?.into_iter();
        let places = terms.map(|term| Ok((place(kind, &term.label)?, term)));
        places.collect::<Result<_, String>>().map(Self)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let mut terms = self.0.iter();
        terms.all(|(place, term)| (selectable(object, place) == term.value) == term.equal)
    }
}

/// The terms of a selector.
pub(super) fn terms(text: &str) -> Result<Vec<Term>, String> {
    let parts = split_unescaped(text).into_iter();
    parts
        .filter(|part| !part.is_empty())
        .map(|part| {
            let unclear = || format!("invalid selector: '{text}'; can't understand '{part}'");
            let (label, rest) = part
                .find(['=', '!'])
                .map(|at| part.split_at(at))
                .ok_or_else(unclear)?;
            let operators = [("!=", false), ("==", true), ("=", true)];
            let mut found = operators
                .iter()
                .filter_map(|(operator, equal)| Some((rest.strip_prefix(operator)?, *equal)));
            let (value, equal) = found.next().ok_or_else(unclear)?;
            Ok(Term {
                label: label.to_owned(),
                value: unescape(value)?,
                equal,
            })
        })
        .collect()
}

/// Splits at commas; a comma after a backslash is part of a value.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => {
                let next = letters.next();
                next.filter(|next| ['\\', ',', '='].contains(next))
                    .ok_or_else(|| {
                        let next = next.map_or(String::new(), String::from);
                        format!("invalid field selector: invalid escape sequence: \\{next}")
                    })?
            }
            ',' | '=' => {
                let code = u32::from(letter);
                return Err(format!(
                    "invalid field selector: unescaped character in value: {code}"
                ));
            }
            other => other,
        });
    }
    Ok(plain)
}

fn place(kind: &'static Kind, label: &str) -> Result<&'static str, String> {
    match label {
        "metadata.name" => return Ok("/metadata/name"),
        "metadata.namespace" if kind.namespaced => return Ok("/metadata/namespace"),
        _ => {}
    }
    let mut fields = kind.fields.iter();
    if let Some((_, place)) = fields.find(|(known, _)| *known == label) {
        return Ok(place);
    }
    Err(match kind.fields {
        [] => format!(
            "{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
        _ => format!("field label not supported: {label}"),
    })
}

/// The text with which a field is compared.
fn selectable(object: &Value, place: &str) -> String {
    match object.pointer(place) {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => other.to_string(),
        _ if BOOLEANS.contains(&place) => "false".to_owned(),
        // Newer events have their source in another field.
        _ if place == "/source/component" => meta::text(object, "/reportingComponent").to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(plural: &str, selector: &str, object: &Value) -> Result<bool, String> {
        let kind = Kind::of(plural).unwrap();
        FieldSelector::parse(kind, selector).map(|parsed| parsed.matches(object))
    }

    #[test]
    fn terms_are_compared_as_upstream_compares_them() {
        let event = json!({ "reason": "a,b=c", "reportingComponent": "kubelet" });
        for (plural, selector, wanted) in [
            ("events", r"reason=a\,b\=c", true),
            ("events", r"reason!=a\,b\=c", false),
            ("events", "source=kubelet", true),
            ("events", ",,type=,", true),
            // A boolean is false, never empty.
            ("nodes", "spec.unschedulable=false", true),
            ("nodes", "spec.unschedulable=", false),
            ("pods", "spec.hostNetwork!=true", true),
        ] {
            assert_eq!(matches(plural, selector, &event), Ok(wanted), "{selector}");
        }
    }

    #[test]
    fn an_invalid_selector_is_refused_in_upstreams_words() {
        for (plural, selector, message) in [
            (
                "pods",
                "spec.nodeName",
                "invalid selector: 'spec.nodeName'; can't understand 'spec.nodeName'",
            ),
            (
                "pods",
                "spec.image=x",
                "field label not supported: spec.image",
            ),
            (
                "pods",
                "metadata.name=a=b",
                "invalid field selector: unescaped character in value: 61",
            ),
            (
                "pods",
                r"metadata.name=\a",
                r"invalid field selector: invalid escape sequence: \a",
            ),
            (
                "configmaps",
                "data=x",
                "\"data\" is not a known field selector: only \"metadata.name\", \
                 \"metadata.namespace\"",
            ),
        ] {
            let error = matches(plural, selector, &json!({})).unwrap_err();
            assert_eq!(error, message, "{selector}");
        }
    }
}
