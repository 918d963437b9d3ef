//! Tests of `route`.

use super::*;

fn shown(path: &str) -> String {
    match route(path) {
        Ok(Route::Objects(target)) => format!(
            "{}.{} ns={} name={} sub={} rest={}",
            target.kind.plural,
            target.kind.group,
            target.namespace(),
            target.name(),
            target.subresource(),
            target.rest
        ),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.code.to_string(),
    }
}

#[test]
fn paths_are_routed() {
    for (path, meaning) in [
        ("/api/v1/pods", "pods. ns= name= sub= rest="),
        (
            "/api/v1/namespaces/a/pods/b/status",
            "pods. ns=a name=b sub=status rest=",
        ),
        ("/api/v1/namespaces/a", "namespaces. ns= name=a sub= rest="),
        (
            "/api/v1/namespaces/a/status",
            "namespaces. ns= name=a sub=status rest=",
        ),
        (
            "/api/v1/nodes/n/proxy/metrics/probes",
            "nodes. ns= name=n sub=proxy rest=metrics/probes",
        ),
        (
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
            "leases.coordination.k8s.io ns=kube-node-lease name=n sub= rest=",
        ),
        ("/api", "CoreVersions"),
        ("/healthz/ping", "Health"),
        ("/api/v1/pods/x", "404"),
        ("/api/v1/namespaces/a/nodes", "404"),
        (
            "/api/v1/namespaces/a/pods/b/exec",
            "pods. ns=a name=b sub=exec rest=",
        ),
        ("/api/v1/namespaces/a/pods/b/scale", "404"),
        ("/api/v1/things", "404"),
        ("/", "404"),
    ] {
        assert_eq!(shown(path), meaning, "{path}");
    }
}
