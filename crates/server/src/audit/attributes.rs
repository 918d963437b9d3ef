//! Attributes of a request, in the terms of audit policies and events.

use http::{Method, Uri};
use rubelet_streaming::SessionKind;

use crate::{
    Resource,
    act::Part,
    query::Query,
    route::{Route, route},
};

/// A request as a policy sees it. Fields that do not apply are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestAttributes {
    pub(crate) verb: String,
    /// The path, for a non-resource request.
    pub(crate) path: String,
    pub(crate) resource: Option<ResourceRef>,
    /// The response is a stream that lasts until the client disconnects.
    pub(crate) long_running: bool,
}

/// The object that a request is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResourceRef {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) subresource: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl RequestAttributes {
    /// A non-resource request: its verb is the method.
    pub(crate) fn of_path(method: &Method, path: &str) -> Self {
        Self {
            verb: method.as_str().to_ascii_lowercase(),
            path: path.to_owned(),
            ..Self::default()
        }
    }

    /// A request on the node's port: a verb on a sub-resource of the node.
    pub(crate) fn of_node(
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

    /// A request on the socket.
    pub(crate) fn of_local(method: &Method, uri: &Uri) -> Self {
        let found = route(uri.path()).ok();
        let follows = matches!(found, Some(Route::Log(..))) && flag(uri, "follow");
        let is_session = matches!(found, Some(Route::Session(..) | Route::Net(_)));
        let Some((resource, is_collection)) = found.and_then(resource) else {
            return Self::of_path(method, uri.path());
        };
        let watches =
            method == Method::GET && resource.subresource.is_empty() && flag(uri, "watch");
        let verb = match (method.as_str(), is_collection) {
            _ if watches => "watch",
            ("GET" | "HEAD", true) => "list",
            ("GET" | "HEAD", false) => "get",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "deletecollection",
            ("DELETE", false) => "delete",
            _ => "",
        };
        Self {
            verb: match verb {
                "" => method.as_str().to_ascii_lowercase(),
                verb => verb.to_owned(),
            },
            path: String::new(),
            resource: Some(resource),
            long_running: watches || follows || is_session,
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

fn flag(uri: &Uri, key: &str) -> bool {
    let query = Query::parse(uri.query()).unwrap_or_default();
    query.flag(key).unwrap_or_default()
}

/// The resource of a path, and whether it is a whole collection.
fn resource(route: Route) -> Option<(ResourceRef, bool)> {
    let of = |resource: Resource, namespace: String, name: String| ResourceRef {
        group: resource.group(),
        version: match resource.group() {
            "" => "v1",
            _ => Resource::NODE_VERSION,
        },
        resource: resource.plural(),
        subresource: "",
        namespace,
        name,
    };
    let part = |subresource, namespace, name| ResourceRef {
        subresource,
        ..of(Resource::Pods, namespace, name)
    };
    let own_part = |subresource, namespace, name| ResourceRef {
        group: Resource::NODE_GROUP,
        version: Resource::NODE_VERSION,
        ..part(subresource, namespace, name)
    };
    Some(match route {
        Route::Collection(resource, namespace) => (
            of(resource, namespace.unwrap_or_default(), String::new()),
            true,
        ),
        Route::Object(resource, namespace, name) => (of(resource, namespace, name), false),
        Route::Log(namespace, name) => (part("log", namespace, name), false),
        Route::Part(pod, Part::Status) => (part("status", pod.namespace, pod.name), false),
        Route::Part(pod, Part::Ephemeral) => {
            (part("ephemeralcontainers", pod.namespace, pod.name), false)
        }
        Route::Session(pod, kind) => {
            let subresource = match kind {
                SessionKind::Exec => "exec",
                SessionKind::Attach => "attach",
                SessionKind::PortForward => "portforward",
            };
            (part(subresource, pod.namespace, pod.name), false)
        }
        Route::Restart(pod) => (own_part("restart", pod.namespace, pod.name), false),
        Route::Why(pod) => (own_part("why", pod.namespace, pod.name), false),
        Route::Net(pod) => (own_part("net", pod.namespace, pod.name), false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
