//! Tests of `attributes`.

use super::*;

fn local(method: &str, uri: &str) -> String {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let found = attributes(&method, &uri.parse().unwrap());
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
            "POST",
            "/apis/node.rubelet.dev/v1alpha1/namespaces/a/pods/b/net?probe=x",
            "create node.rubelet.dev/pods/net a/b long",
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
