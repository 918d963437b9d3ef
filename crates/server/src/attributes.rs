//! Attributes of a request on the socket, in the terms of audit policies and events.

use http::{Method, Uri};
use rubelet_audit::{RequestAttributes, ResourceRef};
use rubelet_http_core::{query::Query, resource::Resource};
use rubelet_streaming::SessionKind;

use crate::{
    act::Part,
    route::{Route, route},
};

/// A request on the socket, as an audit policy sees it.
pub(crate) fn attributes(method: &Method, uri: &Uri) -> RequestAttributes {
    let found = route(uri.path()).ok();
    let follows = matches!(found, Some(Route::Log(..))) && flag(uri, "follow");
    let is_session = matches!(found, Some(Route::Session(..) | Route::Net(_)));
    let Some((resource, is_collection)) = found.and_then(resource) else {
        return RequestAttributes::of_path(method, uri.path());
    };
    let watches = method == Method::GET && resource.subresource.is_empty() && flag(uri, "watch");
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
    RequestAttributes {
        verb: match verb {
            "" => method.as_str().to_ascii_lowercase(),
            verb => verb.to_owned(),
        },
        path: String::new(),
        resource: Some(resource),
        long_running: watches || follows || is_session,
    }
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
