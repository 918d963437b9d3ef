//! Field selectors: `path=value`, `path==value`, `path!=value`, joined by commas.
//!
//! Only fields that the API server selects by are allowed (its registries of pods and events).

use rubelet_http_core::{resource::Resource, status::ApiError};
use serde_json::Value;

use crate::Object;

/// Requirements that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    place: FieldLocation,
    value: String,
    equal: bool,
}

/// The location of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldLocation {
    /// `metadata.name`, which never changes.
    Name,
    /// `metadata.namespace`, which never changes.
    Namespace,
    /// Somewhere in the object; the first pointer that has a value counts.
    Content(&'static [&'static str]),
}

/// Selectable fields and their places in the object.
type Fields = &'static [(&'static str, &'static [&'static str])];

const POD: Fields = &[
    ("spec.hostNetwork", &["/spec/hostNetwork"]),
    ("spec.nodeName", &["/spec/nodeName"]),
    ("spec.restartPolicy", &["/spec/restartPolicy"]),
    ("spec.schedulerName", &["/spec/schedulerName"]),
    ("spec.serviceAccountName", &["/spec/serviceAccountName"]),
    ("status.nominatedNodeName", &["/status/nominatedNodeName"]),
    ("status.phase", &["/status/phase"]),
    ("status.podIP", &["/status/podIP"]),
];

const EVENT: Fields = &[
    ("involvedObject.apiVersion", &["/involvedObject/apiVersion"]),
    ("involvedObject.fieldPath", &["/involvedObject/fieldPath"]),
    ("involvedObject.kind", &["/involvedObject/kind"]),
    ("involvedObject.name", &["/involvedObject/name"]),
    ("involvedObject.namespace", &["/involvedObject/namespace"]),
    (
        "involvedObject.resourceVersion",
        &["/involvedObject/resourceVersion"],
    ),
    ("involvedObject.uid", &["/involvedObject/uid"]),
    ("reason", &["/reason"]),
    ("reportingComponent", &["/reportingComponent"]),
    ("source", &["/source/component", "/reportingComponent"]),
    ("type", &["/type"]),
];

const LIFECYCLE: Fields = &[
    ("cause", &["/cause"]),
    ("container", &["/container"]),
    ("pod.name", &["/pod/name"]),
    ("pod.uid", &["/pod/uid"]),
    ("type", &["/type"]),
];

const MANIFEST: Fields = &[("status.state", &["/status/state"])];

impl FieldSelector {
    pub(super) fn parse(resource: Resource, text: &str) -> Result<Self, ApiError> {
        let mut requirements = Vec::new();
        for term in split_unescaped(text, ',')
            .into_iter()
            .filter(|term| !term.is_empty())
        {
            let (path, value, equal) = split_term(term).ok_or_else(|| {
                refused(
                    resource,
                    text,
                    &format!("invalid selector: {term:?}; use FIELD=VALUE"),
                )
            })?;
            let value = unescape(value).ok_or_else(|| {
                refused(
                    resource,
                    text,
                    &format!("invalid escape sequence in {value:?}"),
                )
            })?;
            let place = place(resource, path.trim()).ok_or_else(|| {
                refused(
                    resource,
                    text,
                    &format!("field label not supported: {}", path.trim()),
                )
            })?;
            requirements.push(Requirement {
                place,
                value,
                equal,
            });
        }
        Ok(Self(requirements))
    }

    /// True if a requirement depends on a field that can change during an object's life.
    pub(super) fn is_by_content(&self) -> bool {
        self.0
            .iter()
            .any(|requirement| matches!(requirement.place, FieldLocation::Content(_)))
    }

    /// Compares name and namespace only.
    pub(super) fn names(&self, object: &Object) -> bool {
        self.0.iter().all(|requirement| match requirement.place {
            FieldLocation::Name => requirement.accepts(&object.name),
            FieldLocation::Namespace => requirement.accepts(&object.namespace),
            FieldLocation::Content(_) => true,
        })
    }

    /// Compares everything else.
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| match requirement.place {
            FieldLocation::Name | FieldLocation::Namespace => true,
            FieldLocation::Content(pointers) => {
                let mut found = pointers.iter().map(|pointer| text_at(object, pointer));
                let value = found.find(|text| !text.is_empty()).unwrap_or_default();
                requirement.accepts(&value)
            }
        })
    }
}

impl Requirement {
    fn accepts(&self, value: &str) -> bool {
        (value == self.value) == self.equal
    }
}

/// A scalar as the selector compares it. An absent value is empty; an absent boolean is false.
fn text_at(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ if pointer == "/spec/hostNetwork" => "false".to_owned(),
        _ => String::new(),
    }
}

fn place(resource: Resource, path: &str) -> Option<FieldLocation> {
    let own = match resource {
        Resource::Pods => POD,
        Resource::Events => EVENT,
        Resource::Manifests => MANIFEST,
        Resource::LifecycleEvents => LIFECYCLE,
    };
    match path {
        "metadata.name" => Some(FieldLocation::Name),
        "metadata.namespace" => Some(FieldLocation::Namespace),
        _ => {
            let field = own.iter().find(|(known, _)| *known == path);
            field.map(|(_, pointers)| FieldLocation::Content(pointers))
        }
    }
}

fn refused(resource: Resource, text: &str, why: &str) -> ApiError {
    ApiError::bad_request(format!(
        "unable to find {:?} that match field selector {text:?}: {why}",
        resource.qualified()
    ))
}

/// Path, value, and whether they must be equal. The first `=` ends the path.
fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    let (path, value) = term.split_once('=')?;
    Some(match path.strip_suffix('!') {
        Some(path) => (path, value, false),
        None => (path, value.strip_prefix('=').unwrap_or(value), true),
    })
}

fn split_unescaped(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == separator && !escaped {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Undoes `\\`, `\,` and `\=`; a bare `=` or any other escape is an error.
fn unescape(value: &str) -> Option<String> {
    let mut plain = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => plain.push(rest.next().filter(|c| matches!(c, '\\' | ',' | '='))?),
            '=' => return None,
            other => plain.push(other),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests;
