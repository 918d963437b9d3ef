//! Tests of `node_authorizer`.

use serde_json::json;

use super::*;
use crate::route::{Route, route};

fn pods() -> Vec<Value> {
    vec![
        json!({
            "metadata": { "name": "web", "namespace": "a" },
            "spec": {
                "nodeName": "n",
                "serviceAccountName": "worker",
                "imagePullSecrets": [{ "name": "pull" }],
                "containers": [{
                    "env": [{ "valueFrom": { "secretKeyRef": { "name": "key", "key": "k" } } }],
                    "envFrom": [{ "configMapRef": { "name": "all" } }],
                }],
                "volumes": [
                    { "secret": { "secretName": "files" } },
                    { "projected": { "sources": [{ "configMap": { "name": "root" } }] } },
                ],
            },
        }),
        json!({
            "metadata": { "name": "far", "namespace": "a" },
            "spec": { "nodeName": "m", "volumes": [{ "secret": { "secretName": "theirs" } }] },
        }),
        json!({
            "metadata": {
                "name": "static-n",
                "namespace": "a",
                "annotations": { "kubernetes.io/config.mirror": "h" },
            },
            "spec": { "nodeName": "n", "volumes": [{ "secret": { "secretName": "taken" } }] },
        }),
    ]
}

fn denial_of(user: &User, verb: Verb, path: &str) -> Option<String> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let Ok(Route::Objects(target)) = route(path) else {
        panic!("{path} is no path of objects")
    };
    let query = Query::parse(Some(query)).unwrap();
    let pods = || pods().into_iter().map(Arc::new).collect();
    denial(user, verb, &target, &query, pods)
}

#[test]
fn a_node_reads_itself_its_pods_and_what_they_reference() {
    use Verb::{Create, Get, List, Watch};
    let node = User::node("n");
    let none = "no relationship found between node 'n' and this object";
    let by_name = "?fieldSelector=metadata.name%3D";
    for (verb, path, wanted) in [
        (Get, "/api/v1/nodes/n", None),
        (
            Get,
            "/api/v1/nodes/m",
            Some("node 'n' cannot read 'm', only its own Node object"),
        ),
        (
            List,
            "/api/v1/nodes",
            Some("node 'n' cannot read all nodes, only its own Node object"),
        ),
        (Watch, &format!("/api/v1/nodes{by_name}n"), None),
        (Watch, "/api/v1/pods?fieldSelector=spec.nodeName%3Dn", None),
        (
            Watch,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dm",
            Some("can only list/watch pods with spec.nodeName field selector"),
        ),
        (Get, "/api/v1/namespaces/a/pods/web", None),
        (Get, "/api/v1/namespaces/a/pods/far", Some(none)),
        (Get, "/api/v1/namespaces/a/secrets/key", None),
        (Get, "/api/v1/namespaces/a/secrets/files", None),
        (Get, "/api/v1/namespaces/a/secrets/pull", None),
        (Get, "/api/v1/namespaces/a/secrets/theirs", Some(none)),
        (Get, "/api/v1/namespaces/a/secrets/taken", Some(none)),
        (Get, "/api/v1/namespaces/b/secrets/key", Some(none)),
        (Get, "/api/v1/namespaces/a/configmaps/key", Some(none)),
        (
            Watch,
            &format!("/api/v1/namespaces/a/configmaps{by_name}root"),
            None,
        ),
        (
            Watch,
            &format!("/api/v1/namespaces/a/configmaps{by_name}all"),
            None,
        ),
        (
            List,
            "/api/v1/namespaces/a/secrets",
            Some("No Object name found"),
        ),
        (
            Create,
            "/api/v1/namespaces/a/secrets",
            Some("can only read resources of this type"),
        ),
        (
            Create,
            "/api/v1/namespaces/a/serviceaccounts/worker/token",
            None,
        ),
        (
            Create,
            "/api/v1/namespaces/a/serviceaccounts/other/token",
            Some(none),
        ),
        (
            List,
            "/api/v1/namespaces/a/serviceaccounts",
            Some("can only create tokens for individual service accounts"),
        ),
    ] {
        assert_eq!(
            denial_of(&node, verb, path).as_deref(),
            wanted,
            "{verb:?} {path}"
        );
    }
    let admin = User::admin();
    assert_eq!(
        denial_of(&admin, List, "/api/v1/namespaces/a/secrets"),
        None
    );
}
#[test]
fn a_node_writes_its_own_objects_and_uses_node_rules() {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    let node = User::node("n");
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let csi_nodes = "/apis/storage.k8s.io/v1/csinodes";
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let pods = "/api/v1/namespaces/a/pods";
    for (verb, path, wanted) in [
        (Create, "/api/v1/nodes", None),
        (Patch, "/api/v1/nodes/n/status", None),
        (Get, "/api/v1/nodes/n/status", Some("")),
        (Get, "/api/v1/nodes/n/proxy/metrics", Some("")),
        (Delete, "/api/v1/nodes/n", Some("")),
        (Create, pods, None),
        (Delete, &format!("{pods}/web"), None),
        (Update, &format!("{pods}/web"), Some("")),
        (Patch, &format!("{pods}/web/status"), None),
        (Get, &format!("{pods}/web/log"), Some("")),
        (Create, &format!("{pods}/web/eviction"), None),
        (Create, &format!("{pods}/web/binding"), Some("")),
        (DeleteCollection, pods, Some("")),
        (
            List,
            "/api/v1/secrets?fieldSelector=metadata.name%3Dkey",
            Some("can only read namespaced object of this type"),
        ),
        (Get, "/api/v1/namespaces/a/serviceaccounts/worker", None),
        (Create, leases, None),
        (Update, &format!("{leases}/n"), None),
        (
            Get,
            &format!("{leases}/m"),
            Some("can only access node lease with the same name as the requesting node"),
        ),
        (
            Get,
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/n",
            Some("can only access leases in the \"kube-node-lease\" system namespace"),
        ),
        (
            Watch,
            leases,
            Some("can only get, create, update, patch, or delete a node lease"),
        ),
        (Create, csi_nodes, None),
        (Patch, &format!("{csi_nodes}/n"), None),
        (
            Get,
            &format!("{csi_nodes}/m"),
            Some("can only access CSINode with the same name as the requesting node"),
        ),
        (
            List,
            csi_nodes,
            Some("can only get, create, update, patch, or delete a CSINode"),
        ),
        (List, "/api/v1/services", None),
        (Create, "/api/v1/services", Some("")),
        (Create, "/api/v1/namespaces/a/events", None),
        (List, "/api/v1/namespaces/a/events", Some("")),
        (Watch, "/apis/node.k8s.io/v1/runtimeclasses", None),
        (Watch, "/apis/storage.k8s.io/v1/csidrivers", None),
        (Create, requests, None),
        (Update, &format!("{requests}/x/approval"), Some("")),
        (Create, "/apis/authentication.k8s.io/v1/tokenreviews", None),
        (Get, "/api/v1/namespaces/a", Some("")),
    ] {
        assert_eq!(
            denial_of(&node, verb, path).as_deref(),
            wanted,
            "{verb:?} {path}"
        );
    }
}
