//! One version of one object, rendered on request.

use std::{fmt, sync::Arc};

use rubelet_http_core::resource::Resource;
use serde_json::Value;

/// Renders the JSON of an object on request.
///
/// `apiVersion`, `kind` and `metadata.resourceVersion` are filled in by the server.
pub trait Render: Send + Sync + 'static {
    /// The object, with `metadata` and whatever else its kind has.
    fn render(&self) -> Value;
}

impl<F: Fn() -> Value + Send + Sync + 'static> Render for F {
    fn render(&self) -> Value {
        self()
    }
}

/// One version of one object. Cheap to clone.
#[derive(Clone)]
pub struct Object {
    /// `metadata.namespace`; empty for resources without namespaces.
    pub namespace: Arc<str>,
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `metadata.resourceVersion`.
    pub resource_version: u64,
    /// Everything else.
    pub body: Arc<dyn Render>,
}

impl Object {
    /// An object that has no version yet.
    pub fn new(namespace: &str, name: &str, body: impl Render) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            resource_version: 0,
            body: Arc::new(body),
        }
    }

    /// The complete object.
    #[must_use]
    pub fn to_json(&self, resource: Resource) -> Value {
        let mut json = self.body.render();
        json["apiVersion"] = resource.api_version().into();
        json["kind"] = resource.kind().into();
        json["metadata"]["resourceVersion"] = self.resource_version.to_string().into();
        json
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}@{}",
            self.namespace, self.name, self.resource_version
        )
    }
}
