//! Which objects of a collection are wanted: namespace, name, label selector, field selector.

use rubelet_server::LabelSelector;
use serde_json::Value;

use crate::{Kind, StatusError, meta, query::Query, route::Target};

/// The objects a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    namespace: Option<String>,
    name: Option<String>,
    labels: LabelSelector,
    fields: Vec<Requirement>,
}

#[derive(Debug, Clone)]
struct Requirement {
    pointer: &'static str,
    value: String,
    equal: bool,
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(crate) fn read(target: &Target, query: &Query) -> Result<Self, StatusError> {
        let labels =
            LabelSelector::read(query.text("labelSelector")).map_err(StatusError::bad_request)?;
        Ok(Self {
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            labels,
            fields: fields(target.kind, query.text("fieldSelector"))?,
        })
    }

    /// True for an object that is wanted.
    pub(crate) fn admits(&self, object: &Value) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        is(&self.namespace, meta::namespace(object))
            && is(&self.name, meta::name(object))
            && self.fields.iter().all(|wanted| wanted.holds(object))
            && self.labels.matches(&object["metadata"]["labels"])
    }
}

impl Requirement {
    fn holds(&self, object: &Value) -> bool {
        let is_equal = match object.pointer(self.pointer) {
            None | Some(Value::Null) => {
                // A boolean that is not set is false.
                self.value.is_empty() || self.value == "false"
            }
            Some(Value::String(found)) => *found == self.value,
            Some(other) => self
                .value
                .parse()
                .is_ok_and(|wanted: Value| wanted == *other),
        };
        is_equal == self.equal
    }
}

fn fields(kind: &'static Kind, text: &str) -> Result<Vec<Requirement>, StatusError> {
    let parts = text.split(',').filter(|part| !part.is_empty());
    let read = parts.map(|part| {
        let (label, value, equal) = if let Some((label, value)) = part.split_once("!=") {
            (label, value, false)
        } else if let Some((label, value)) = part.split_once("==") {
            (label, value, true)
        } else if let Some((label, value)) = part.split_once('=') {
            (label, value, true)
        } else {
            let message = format!("invalid selector: {text:?}; can't understand {part:?}");
            return Err(StatusError::bad_request(message));
        };
        Ok(Requirement {
            pointer: pointer(kind, label)?,
            value: value.to_owned(),
            equal,
        })
    });
    read.collect()
}

fn pointer(kind: &'static Kind, label: &str) -> Result<&'static str, StatusError> {
    match label {
        "metadata.name" => return Ok("/metadata/name"),
        "metadata.namespace" if kind.namespaced => return Ok("/metadata/namespace"),
        _ => {}
    }
    let found = kind.fields.iter().find(|(known, _)| *known == label);
    found
        .map(|(_, pointer)| *pointer)
        .ok_or_else(|| StatusError::bad_request(format!("field label not supported: {label}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn admits(fields: &str, labels: &str) -> Result<bool, StatusError> {
        let pods = Kind::of("pods").unwrap();
        let query = format!("fieldSelector={fields}&labelSelector={labels}");
        let query = Query::parse(Some(&query)).unwrap();
        let selection = Selection::read(&Target::collection(pods, Some("a")), &query)?;
        Ok(selection.admits(&json!({
            "metadata": { "name": "x", "namespace": "a", "labels": { "app": "web" } },
            "spec": { "nodeName": "n", "hostNetwork": true },
            "status": { "phase": "Running" },
        })))
    }

    #[test]
    fn objects_are_selected_by_fields_and_labels() {
        for (fields, labels, wanted) in [
            ("", "", true),
            ("spec.nodeName=n", "", true),
            ("spec.nodeName==m", "", false),
            ("spec.nodeName!=,status.phase!=Failed", "", true),
            ("status.podIP=", "", true),
            ("spec.hostNetwork=true", "", true),
            ("metadata.name=x", "app=web", true),
            ("metadata.name=x", "app!=web", false),
        ] {
            assert_eq!(admits(fields, labels), Ok(wanted), "{fields} {labels}");
        }
        for (fields, labels) in [
            ("spec.image=x", ""),
            ("spec.nodeName", ""),
            ("", "a%3Db%2C"),
        ] {
            assert!(admits(fields, labels).is_err(), "{fields} {labels}");
        }
    }
}
