//! What a request asks for, in the words that audit policies and events use.

use http::{Method, Uri};

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
    /// The path, for a request that is about no resource.
    pub(crate) path: String,
    pub(crate) resource: Option<ResourceRef>,
    /// The answer goes on for as long as the client stays.
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
    /// A request that is about no resource: its verb is the method.
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
            long_running: follows(uri),
        }
    }

    /// A request on the socket.
    pub(crate) fn of_local(method: &Method, uri: &Uri) -> Self {
        let found = route(uri.path()).ok();
        let follows = matches!(found, Some(Route::Log(..))) && flag(uri, "follow");
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
            long_running: watches || follows,
        }
    }
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

/// The resource of a path, and whether all of a collection is meant.
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
        Route::Restart(pod) => (own_part("restart", pod.namespace, pod.name), false),
        Route::Why(pod) => (own_part("why", pod.namespace, pod.name), false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(method: &str, uri: &str) -> String {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let found = RequestAttributes::of_local(&method, &uri.parse().unwrap());
        let long = if found.long_running { " long" } else { "" };
        match found.resource {
            None => format!("{} {}{long}", found.verb, found.path),
            Some(of) => format!(
                "{} {}/{}/{} {}/{}{long}",
                found.verb, of.group, of.resource, of.subresource, of.namespace, of.name
            ),
        }
    }

    #[test]
    fn a_log_is_followed_where_the_port_says_so() {
        for (query, long) in [
            ("follow", true),
            ("follow=yes", true),
            ("follow=1&follow=0", true),
            ("follow=0&follow=1", false),
            ("follow=False", false),
            ("tailLines=1", false),
        ] {
            let uri = format!("/containerLogs/a/b/c?{query}").parse().unwrap();
            let found = RequestAttributes::of_node(&Method::GET, "get", "proxy", "n", &uri);
            assert_eq!(found.long_running, long, "{query}");
        }
    }

    #[test]
    fn requests_of_the_socket_have_the_verbs_of_the_api_server() {
        for (method, uri, expected) in [
            ("GET", "/api/v1/pods", "list /pods/ /"),
            ("GET", "/pods", "list /pods/ /"),
            ("GET", "/api/v1/pods?watch=1", "watch /pods/ / long"),
            ("GET", "/api/v1/namespaces/a/pods/b", "get /pods/ a/b"),
            (
                "GET",
                "/api/v1/namespaces/a/pods/b?watch=true",
                "watch /pods/ a/b long",
            ),
            ("DELETE", "/api/v1/namespaces/a/pods/b", "delete /pods/ a/b"),
            ("DELETE", "/api/v1/pods", "deletecollection /pods/ /"),
            ("BREW", "/api/v1/pods", "brew /pods/ /"),
            (
                "GET",
                "/api/v1/namespaces/a/pods/b/log?follow=true",
                "get /pods/log a/b long",
            ),
            (
                "GET",
                "/api/v1/namespaces/a/pods/b/log",
                "get /pods/log a/b",
            ),
            (
                "PATCH",
                "/api/v1/namespaces/a/pods/b/status",
                "patch /pods/status a/b",
            ),
            (
                "PUT",
                "/api/v1/namespaces/a/pods/b/ephemeralcontainers",
                "update /pods/ephemeralcontainers a/b",
            ),
            (
                "POST",
                "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/restart",
                "create node.rubelet.dev/pods/restart a/b",
            ),
            ("GET", "/healthz?verbose", "get /healthz"),
            ("GET", "/configz", "get /configz"),
            ("GET", "/%zz", "get /%zz"),
            ("GET", "/x/../y", "get /x/../y"),
        ] {
            assert_eq!(local(method, uri), expected, "{method} {uri}");
        }
    }
}
