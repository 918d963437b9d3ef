//! Access to objects within this process as an administrator: without connection, faults or record.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::SimApi;
use crate::{
    Kind, StatusError, event_conversion, meta,
    negotiation::ResponseFormat,
    query::Query,
    request::{Request, Verb},
    route::Target,
    user::User,
    verb::{self, Reply},
};

/// A condition was not met in time.
#[derive(Debug, thiserror::Error)]
#[error("{what} did not meet the condition within {limit:?}; last state: {last}")]
pub struct WaitTimeout {
    what: String,
    limit: Duration,
    last: String,
}

impl SimApi {
    /// Creates an object in its `metadata.namespace`, by default in `default`.
    ///
    /// # Errors
    /// Those of the API server. `resource` is a plural, or `plural.group`.
    pub fn create(&self, resource: &str, object: &Value) -> Result<Value, StatusError> {
        let kind = kind(resource)?;
        let target = Target::collection(kind, namespace_of(kind, meta::namespace(object)));
        self.act(Verb::Create, target, "", object.to_string())
    }

    /// The object, if it exists.
    #[must_use]
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let kind = Kind::of(resource)?;
        let namespace = namespace_of(kind, namespace).unwrap_or_default();
        let found = self
            .shared
            .with_store(|store| store.get(kind.storage, namespace, name).cloned());
        found.map(|object| event_conversion::from_storage(kind, &object))
    }

    /// All objects of a resource, in all namespaces.
    #[must_use]
    pub fn list(&self, resource: &str) -> Vec<Value> {
        let Some(kind) = Kind::of(resource) else {
            return Vec::new();
        };
        let objects = self
            .shared
            .with_store(|store| store.list(kind.storage, None));
        let objects = objects.iter();
        objects
            .map(|object| event_conversion::from_storage(kind, object))
            .collect()
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// Those of the API server.
    pub fn update(&self, resource: &str, object: &Value) -> Result<Value, StatusError> {
        let target = target(resource, meta::namespace(object), meta::name(object))?;
        self.act(Verb::Update, target, "", object.to_string())
    }

    /// Changes an object with a strategic merge patch. `resource` may have a subresource:
    /// `pods/status`.
    ///
    /// # Errors
    /// Those of the API server.
    pub fn patch(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, StatusError> {
        let target = target(resource, namespace, name)?;
        let media_type = "application/strategic-merge-patch+json";
        self.act(Verb::Patch, target, media_type, patch.to_string())
    }

    /// Deletes an object, perhaps gracefully; `grace` in seconds.
    ///
    /// # Errors
    /// Those of the API server.
    pub fn delete(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
        grace: Option<u32>,
    ) -> Result<(), StatusError> {
        let target = target(resource, namespace, name)?;
        let body = match grace {
            Some(seconds) => format!(r#"{{"gracePeriodSeconds":{seconds}}}"#),
            None => String::new(),
        };
        self.act(Verb::Delete, target, "", body).map(drop)
    }

    /// Binds a pod to a node.
    ///
    /// # Errors
    /// Those of the API server.
    pub fn bind(&self, namespace: &str, name: &str, node: &str) -> Result<(), StatusError> {
        let target = target("pods/binding", namespace, name)?;
        let body = serde_json::json!({ "target": { "kind": "Node", "name": node } });
        self.act(Verb::Create, target, "", body.to_string())
            .map(drop)
    }

    /// The resource version of the last change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.with_store(|store| store.version())
    }

    /// Waits until an object meets a condition; `None` means that it does not exist.
    ///
    /// # Errors
    /// The condition was not met in time; the error has the last state.
    pub async fn wait_for(
        &self,
        (resource, namespace, name): (&str, &str, &str),
        limit: Duration,
        wanted: impl Fn(Option<&Value>) -> bool,
    ) -> Result<Option<Value>, WaitTimeout> {
        let mut changes = self.shared.changes();
        let waiting = async {
            loop {
                changes.mark_unchanged();
                let found = self.get(resource, namespace, name);
                // The sender lives as long as the server.
                if wanted(found.as_ref()) || changes.changed().await.is_err() {
                    return found;
                }
            }
        };
        match tokio::time::timeout(limit, waiting).await {
            Ok(found) => Ok(found),
            Err(_) => Err(WaitTimeout {
                what: format!("{resource} {namespace}/{name}"),
                limit,
                last: self
                    .get(resource, namespace, name)
                    .map_or_else(|| "absent".to_owned(), |object| object.to_string()),
            }),
        }
    }

    fn act(
        &self,
        verb: Verb,
        target: Target,
        media_type: &str,
        body: String,
    ) -> Result<Value, StatusError> {
        let request = Request {
            user: User::admin().authenticated(),
            verb,
            target,
            query: Query::default(),
            media_type: media_type.to_owned(),
            body: Bytes::from(body),
            format: ResponseFormat::Object,
        };
        match verb::answer(&self.shared, &request)? {
            Reply::Object { value, .. } => Ok(value),
            Reply::Watch(_) => Err(StatusError::method_not_allowed()),
        }
    }
}

fn kind(resource: &str) -> Result<&'static Kind, StatusError> {
    Kind::of(resource).ok_or_else(StatusError::unknown_path)
}

/// The namespace of an object of this kind, by default `default`.
fn namespace_of<'a>(kind: &Kind, namespace: &'a str) -> Option<&'a str> {
    match namespace {
        _ if !kind.namespaced => None,
        "" => Some("default"),
        namespace => Some(namespace),
    }
}

fn target(resource: &str, namespace: &str, name: &str) -> Result<Target, StatusError> {
    let (plural, part) = match resource.split_once('/') {
        Some((plural, part)) => (plural, Some(part)),
        None => (resource, None),
    };
    let kind = kind(plural)?;
    let namespace = namespace_of(kind, namespace).unwrap_or_default();
    Ok(Target {
        subresource: part.map(str::to_owned),
        ..Target::object(kind, namespace, name)
    })
}
