//! What a node may do: read its own object, its pods, and what these name, one object at a time; keep its lease;
//! and a few things that all nodes may. Source of the rules and texts: upstream's Node authorizer and `NodeRules`.

use std::sync::Arc;

use serde_json::Value;

use crate::{meta, query::Query, request::Verb, route::Target, selection, user::User};

/// Why a node may not make a request for objects; `None` if it may, or if no node asks. `pods` are all
/// that the server relates to nodes. An empty text is a refusal without a reason.
pub(crate) fn objection(
    user: &User,
    verb: Verb,
    target: &Target,
    query: &Query,
    pods: impl FnOnce() -> Vec<Arc<Value>>,
) -> Option<String> {
    let node = user.node_name()?;
    let selected = |label: &str| selection::required(query, label).unwrap_or_default();
    let name = match target.name() {
        "" => selected("metadata.name"),
        name => name.to_owned(),
    };
    let subresource = target.subresource();
    let is_read = [Verb::Get, Verb::List, Verb::Watch].contains(&verb);
    let refused = |why: &str| Some(why.to_owned());
    let subject = match target.kind.storage {
        "nodes" => return about_node(node, verb, subresource, &name),
        "leases" => return about_lease(node, verb, target.namespace(), &name),
        "csinodes" => return about_csi_node(node, verb, subresource, &name),
        "pods" => match (subresource, verb) {
            ("", Verb::Get) => Subject::Pod,
            ("", Verb::List | Verb::Watch) if selected("spec.nodeName") == node => return None,
            ("", Verb::List | Verb::Watch) if name.is_empty() => {
                return refused("can only list/watch pods with spec.nodeName field selector");
            }
            ("", Verb::List | Verb::Watch) => Subject::Pod,
            // What these may do to which pod is decided by NodeRestriction.
            ("", Verb::Create | Verb::Delete)
            | ("status", Verb::Update | Verb::Patch)
            | ("eviction", Verb::Create) => return None,
            _ => return refused(""),
        },
        "secrets" | "configmaps" if !is_read => {
            return refused("can only read resources of this type");
        }
        "secrets" | "configmaps" if target.namespace.is_none() => {
            return refused("can only read namespaced object of this type");
        }
        "secrets" => Subject::Secret,
        "configmaps" => Subject::ConfigMap,
        "serviceaccounts" => match (verb, subresource) {
            (Verb::Get, "") => Subject::Account,
            (Verb::Create, "token") if !name.is_empty() => Subject::Account,
            (Verb::Create, _) if !name.is_empty() => {
                return refused("can only create token subresource of serviceaccount");
            }
            _ => return refused("can only create tokens for individual service accounts"),
        },
        _ => return (!is_usual(target, verb)).then(String::new),
    };
    if name.is_empty() {
        return refused("No Object name found");
    }
    let is_related = pods().iter().any(|pod| {
        meta::text(pod, "/spec/nodeName") == node
            && meta::namespace(pod) == target.namespace()
            && names(pod, subject, &name)
    });
    (!is_related).then(|| format!("no relationship found between node '{node}' and this object"))
}

/// Nodes read themselves, and write what NodeRestriction lets them.
fn about_node(node: &str, verb: Verb, subresource: &str, name: &str) -> Option<String> {
    match (subresource, verb) {
        ("", Verb::Create) | ("" | "status", Verb::Update | Verb::Patch) => None,
        ("", Verb::Get | Verb::List | Verb::Watch) if name == node => None,
        ("", Verb::Get | Verb::List | Verb::Watch) => {
            let what = match name {
                "" => "all nodes".to_owned(),
                name => format!("'{name}'"),
            };
            Some(format!(
                "node '{node}' cannot read {what}, only its own Node object"
            ))
        }
        _ => Some(String::new()),
    }
}

/// A node has one lease. On creation its name is not known here.
fn about_lease(node: &str, verb: Verb, namespace: &str, name: &str) -> Option<String> {
    let why = match verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            "can only get, create, update, patch, or delete a node lease"
        }
        _ if namespace != "kube-node-lease" => {
            "can only access leases in the \"kube-node-lease\" system namespace"
        }
        Verb::Create => return None,
        _ if name != node => "can only access node lease with the same name as the requesting node",
        _ => return None,
    };
    Some(why.to_owned())
}

fn about_csi_node(node: &str, verb: Verb, subresource: &str, name: &str) -> Option<String> {
    let why = match verb {
        Verb::List | Verb::Watch | Verb::DeleteCollection => {
            "can only get, create, update, patch, or delete a CSINode"
        }
        _ if !subresource.is_empty() => "cannot authorize CSINode subresources",
        Verb::Create => return None,
        _ if name != node => "can only access CSINode with the same name as the requesting node",
        _ => return None,
    };
    Some(why.to_owned())
}

/// What all nodes may do alike: upstream's `NodeRules`, and what every known user may.
fn is_usual(target: &Target, verb: Verb) -> bool {
    let is_read = [Verb::Get, Verb::List, Verb::Watch].contains(&verb);
    let is_write = [Verb::Create, Verb::Update, Verb::Patch].contains(&verb);
    match (target.kind.plural, target.subresource()) {
        ("tokenreviews" | "subjectaccessreviews" | "selfsubjectaccessreviews", "") => {
            verb == Verb::Create
        }
        ("services" | "csidrivers" | "runtimeclasses", "") => is_read,
        ("events", "") => is_write,
        ("certificatesigningrequests", "") => is_read || verb == Verb::Create,
        _ => false,
    }
}

/// What a pod may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Pod,
    Secret,
    ConfigMap,
    Account,
}

/// Whether a pod is, or names, that object. A mirror pod names nothing: the node itself made it.
fn names(pod: &Value, subject: Subject, name: &str) -> bool {
    if subject == Subject::Pod {
        return meta::name(pod) == name;
    }
    let mirror = "/metadata/annotations/kubernetes.io~1config.mirror";
    if pod.pointer(mirror).is_some() {
        return false;
    }
    match subject {
        Subject::Account => meta::text(pod, "/spec/serviceAccountName") == name,
        _ => refers(&pod["spec"], subject, name),
    }
}

/// Whether a part of a pod's specification refers to a secret or map of that name.
fn refers(value: &Value, subject: Subject, name: &str) -> bool {
    let references: &[(&str, &str)] = match subject {
        Subject::Secret => &[
            ("secretKeyRef", "/name"),
            ("secretRef", "/name"),
            ("azureFile", "/secretName"),
            ("nodePublishSecretRef", "/name"),
            ("secret", "/name"),
            ("secret", "/secretName"),
        ],
        _ => &[
            ("configMapKeyRef", "/name"),
            ("configMapRef", "/name"),
            ("configMap", "/name"),
        ],
    };
    match value {
        Value::Array(items) => items.iter().any(|item| refers(item, subject, name)),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let mut references = references.iter().filter(|(field, _)| field == key);
            references.any(|(_, place)| meta::text(value, place) == name)
                || (key == "imagePullSecrets"
                    && subject == Subject::Secret
                    && value.as_array().is_some_and(|list| {
                        list.iter().any(|one| meta::text(one, "/name") == name)
                    }))
                || refers(value, subject, name)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
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

    fn said(user: &User, verb: Verb, path: &str) -> Option<String> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let Ok(Route::Objects(target)) = route(path) else {
            panic!("{path} is no path of objects")
        };
        let query = Query::parse(Some(query)).unwrap();
        let pods = || pods().into_iter().map(Arc::new).collect();
        objection(user, verb, &target, &query, pods)
    }

    #[test]
    fn a_node_reads_its_own_object_its_pods_and_what_they_name() {
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
                said(&node, verb, path).as_deref(),
                wanted,
                "{verb:?} {path}"
            );
        }
        let admin = User::admin();
        assert_eq!(said(&admin, List, "/api/v1/namespaces/a/secrets"), None);
    }
    #[test]
    fn a_node_keeps_its_own_objects_and_does_what_all_nodes_may() {
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
                said(&node, verb, path).as_deref(),
                wanted,
                "{verb:?} {path}"
            );
        }
    }
}
