//! Selection of objects in a collection: namespace, label selector, field selector.

mod field;
mod label;

use serde_json::Value;

use self::{field::FieldSelector, label::LabelSelector};
use crate::{StatusError, meta, query::Query, route::Target};

/// The selection of a request.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    namespace: Option<String>,
    name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Parses `labelSelector` and `fieldSelector`.
    pub(crate) fn read(target: &Target, query: &Query) -> Result<Self, StatusError> {
        let labels = LabelSelector::parse(query.text("labelSelector"));
        let fields = FieldSelector::parse(target.kind, query.text("fieldSelector"));
        Ok(Self {
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            labels: labels.map_err(StatusError::bad_request)?,
            fields: fields.map_err(StatusError::bad_request)?,
        })
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let is = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        is(&self.namespace, meta::namespace(object))
            && is(&self.name, meta::name(object))
            && self.fields.matches(object)
            && self.labels.matches(object)
    }
}

/// The value that a field selector requires of a label, as the node authorizer parses it; an invalid
/// selector requires nothing.
pub(crate) fn required(query: &Query, label: &str) -> Option<String> {
    let terms = field::terms(query.text("fieldSelector")).ok()?;
    let mut found = terms.into_iter().filter(|term| term.equal);
    found
        .find(|term| term.label == label)
        .map(|term| term.value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Kind;

    fn matches(fields: &str, labels: &str) -> Result<bool, StatusError> {
        let pods = Kind::of("pods").unwrap();
        let query = format!("fieldSelector={fields}&labelSelector={labels}");
        let query = Query::parse(Some(&query)).unwrap();
        let selection = Selection::read(&Target::collection(pods, Some("a")), &query)?;
        Ok(selection.matches(&json!({
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
            assert_eq!(matches(fields, labels), Ok(wanted), "{fields} {labels}");
        }
        for (fields, labels) in [
            ("spec.image=x", ""),
            ("spec.nodeName", ""),
            ("", "a%3Db%2C"),
        ] {
            let error = matches(fields, labels).unwrap_err();
            assert_eq!(error.code, 400, "{fields} {labels}");
        }
    }

    #[test]
    fn only_equality_terms_restrict_a_selection() {
        for (selector, wanted) in [
            ("spec.nodeName%3Dn", Some("n")),
            ("status.phase!%3DFailed,spec.nodeName%3D%3Dn", Some("n")),
            ("spec.nodeName!%3Dn", None),
            ("spec.nodeName", None),
        ] {
            let query = Query::parse(Some(&format!("fieldSelector={selector}"))).unwrap();
            assert_eq!(
                required(&query, "spec.nodeName").as_deref(),
                wanted,
                "{selector}"
            );
        }
    }
}
