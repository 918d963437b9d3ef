//! Attributes of a request, in the terms of audit policies and events.

use http::{Method, Uri};
use rubelet_http_core::query::Query;

/// A request as a policy sees it. Fields that do not apply are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestAttributes {
    /// The verb: `get`, `list`, or the method in lower case.
    pub verb: String,
    /// The path, for a non-resource request.
    pub path: String,
    /// The object, for any other request.
    pub resource: Option<ResourceRef>,
    /// The response is a stream that lasts until the client disconnects.
    pub long_running: bool,
}

/// The object that a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceRef {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version of the group.
    pub version: &'static str,
    /// The plural: `pods`.
    pub resource: &'static str,
    /// The sub-resource, such as `log`; empty for the object itself.
    pub subresource: &'static str,
    /// The namespace; empty for all of them, and for resources without namespaces.
    pub namespace: String,
    /// The name; empty for a collection.
    pub name: String,
}

impl RequestAttributes {
    /// A non-resource request: its verb is the method.
    #[must_use]
    pub fn of_path(method: &Method, path: &str) -> Self {
        Self {
            verb: method.as_str().to_ascii_lowercase(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// A request on the kubelet API: a verb on a sub-resource of the node.
    #[must_use]
    pub fn of_node(
        method: &Method,
        verb: &'static str,
        subresource: &'static str,
        node: &str,
        uri: &Uri,
    ) -> Self {
        Self {
            verb: match verb {
                "" => method.as_str().to_ascii_lowercase(),
                verb => verb.to_owned(),
            },
            path: String::new(),
            resource: Some(ResourceRef {
                version: "v1",
                resource: "nodes",
                subresource,
                name: node.to_owned(),
                ..ResourceRef::default()
            }),
            long_running: follows(uri) || is_session(uri.path()),
        }
    }
}

/// Whether a path of the kubelet API is one of a session; the segments after the first are names.
fn is_session(path: &str) -> bool {
    let root = path.trim_start_matches('/').split('/').next();
    matches!(root, Some("exec" | "attach" | "portForward"))
}

/// As `/containerLogs` reads it: the first value counts, and everything but `0` and `false` is true.
fn follows(uri: &Uri) -> bool {
    let query = Query::parse(uri.query()).unwrap_or_default();
    let follow = query.first("follow");
    follow.is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

#[cfg(test)]
mod tests;
