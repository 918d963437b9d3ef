//! From a request to the sub-resources of the node that its user needs a right on.

use std::sync::Arc;

use http::Method;
use rubelet_http_core::user::Attributes;

use super::path::CleanPath;

/// The attributes of a request. It is allowed if any of these is: the first ones are the
/// fine-grained rights, `proxy` is the broad one that older roles grant. Source: Kubernetes,
/// `pkg/kubelet/server/auth.go`.
pub(super) fn attributes(
    method: &Method,
    path: &CleanPath,
    node: &Arc<str>,
    fine_grained: bool,
) -> Vec<Attributes> {
    let verb = verb(method);
    let attributes = |subresource: &&'static str| Attributes {
        verb,
        subresource,
        node: Arc::clone(node),
    };
    subresources(path.root(), fine_grained)
        .iter()
        .map(attributes)
        .collect()
}

/// The API verb of a method; other methods have none, so that only a role for every verb allows
/// them.
pub(super) fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "GET" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

fn subresources(root: &str, fine_grained: bool) -> &'static [&'static str] {
    match root {
        "stats" => &["stats"],
        "metrics" => &["metrics"],
        // Named like the other sub-resources with logs.
        "logs" => &["log"],
        "checkpoint" => &["checkpoint"],
        "statusz" => &["statusz"],
        "flagz" => &["configz"],
        "pods" | "runningpods" if fine_grained => &["pods", "proxy"],
        "healthz" if fine_grained => &["healthz", "proxy"],
        "configz" if fine_grained => &["configz", "proxy"],
        _ => &["proxy"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, path: &str, fine_grained: bool) -> (String, Vec<&'static str>) {
        let path = CleanPath::read(path).unwrap();
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let asked = attributes(&method, &path, &"n".into(), fine_grained);
        assert!(asked.iter().all(|one| &*one.node == "n"));
        let subresources = asked.iter().map(|one| one.subresource).collect();
        (asked[0].verb.to_owned(), subresources)
    }

    #[test]
    fn each_path_needs_the_right_that_the_kubelet_asks_for() {
        for (path, expected) in [
            ("/pods", &["pods", "proxy"][..]),
            ("/pods/", &["pods", "proxy"]),
            ("/podsx", &["proxy"]),
            ("/runningpods/", &["pods", "proxy"]),
            ("/runningpods", &["pods", "proxy"]),
            ("/healthz", &["healthz", "proxy"]),
            ("/healthz/syncloop", &["healthz", "proxy"]),
            ("/configz", &["configz", "proxy"]),
            ("/flagz", &["configz"]),
            ("/statusz", &["statusz"]),
            ("/stats/summary", &["stats"]),
            ("/metrics", &["metrics"]),
            ("/metrics/probes", &["metrics"]),
            ("/metricsx", &["proxy"]),
            ("/logs/messages", &["log"]),
            ("/checkpoint/a/b/c", &["checkpoint"]),
            ("/containerLogs/a/b/c", &["proxy"]),
            ("/exec/a/b/c", &["proxy"]),
            ("/attach/a/b/c", &["proxy"]),
            ("/portForward/a/b", &["proxy"]),
            ("/run/a/b/c", &["proxy"]),
            ("/debug/pprof/heap", &["proxy"]),
            ("/", &["proxy"]),
        ] {
            assert_eq!(asked("GET", path, true).1, expected, "{path}");
        }
        for path in ["/pods", "/runningpods/", "/healthz", "/configz"] {
            assert_eq!(asked("GET", path, false).1, ["proxy"], "{path}");
        }
        assert_eq!(asked("GET", "/metrics", false).1, ["metrics"]);
    }

    #[test]
    fn methods_are_verbs() {
        for (method, verb) in [
            ("POST", "create"),
            ("GET", "get"),
            ("PUT", "update"),
            ("PATCH", "patch"),
            ("DELETE", "delete"),
            ("HEAD", ""),
            ("OPTIONS", ""),
            ("TRACE", ""),
            ("get", ""),
        ] {
            assert_eq!(asked(method, "/pods", true).0, verb, "{method}");
        }
    }
}
