//! Selection of objects in a collection: namespace, label selector, field selector.

mod field;
mod label;

use std::sync::Arc;

use rubelet_http_core::{query::Query, resource::Resource, status::ApiError};
use serde_json::Value;

use self::field::FieldSelector;
use self::label::LabelSelector;
use crate::Object;

/// The objects that a request selects.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) resource: Resource,
    namespace: Option<Arc<str>>,
    /// Selects one object by its name in the path.
    name: Option<Arc<str>>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(crate) fn new(
        resource: Resource,
        namespace: Option<&str>,
        name: Option<&str>,
        query: &Query,
    ) -> Result<Self, ApiError> {
        let labels = query.get("labelSelector").unwrap_or_default();
        let fields = query.get("fieldSelector").unwrap_or_default();
        Ok(Self {
            resource,
            namespace: namespace.map(Arc::from),
            name: name.map(Arc::from),
            labels: LabelSelector::parse(labels)?,
            fields: FieldSelector::parse(resource, fields)?,
        })
    }

    /// The object as JSON if it is selected. Objects of other namespaces are not rendered.
    pub(crate) fn admit(&self, object: &Object) -> Option<Value> {
        if !self.names(object) {
            return None;
        }
        let json = object.to_json(self.resource);
        (self.labels.matches(&json["metadata"]["labels"]) && self.fields.matches(&json))
            .then_some(json)
    }

    /// True if the object is selected; rendered only if necessary.
    pub(crate) fn admits(&self, object: &Object) -> bool {
        if self.is_by_content() {
            self.admit(object).is_some()
        } else {
            self.names(object)
        }
    }

    /// True if a change of an object can move it in or out of the selection.
    pub(crate) fn is_by_content(&self) -> bool {
        !self.labels.is_empty() || self.fields.is_by_content()
    }

    /// True if namespace and name match.
    pub(crate) fn names(&self, object: &Object) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| *namespace == object.namespace)
            && self.name.as_ref().is_none_or(|name| *name == object.name)
            && self.fields.names(object)
    }
}
