//! What a node may read: its own object, its pods, and what these name, one object at a time. Source of
//! the rules and texts: upstream's Node authorizer.

use std::sync::Arc;

use serde_json::Value;

use crate::{meta, query::Query, request::Verb, route::Target, selection, user::User};

/// Why a node may not make a request for objects; `None` if it may, or if no node asks. `pods` are all
/// that the server relates to nodes.
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
    let is_read = [Verb::Get, Verb::List, Verb::Watch].contains(&verb);
    let subject = match (target.kind.storage, target.subresource()) {
        ("nodes", "") if is_read => {
            return match name.as_str() {
                "" => Some("all nodes".to_owned()),
                name if name != node => Some(format!("'{name}'")),
                _ => None,
            }
            .map(|what| format!("node '{node}' cannot read {what}, only its own Node object"));
        }
        ("pods", "") if is_read && selected("spec.nodeName") == node => return None,
        ("pods", "") if is_read && name.is_empty() => {
            let why = "can only list/watch pods with spec.nodeName field selector";
            return Some(why.to_owned());
        }
        ("pods", "") if is_read => Subject::Pod,
        ("secrets" | "configmaps", _) if !is_read => {
            return Some("can only read resources of this type".to_owned());
        }
        ("secrets", _) => Subject::Secret,
        ("configmaps", _) => Subject::ConfigMap,
        ("serviceaccounts", "") if verb == Verb::Get => Subject::Account,
        ("serviceaccounts", "token") if verb == Verb::Create => Subject::Account,
        ("serviceaccounts", _) => {
            return Some("can only create tokens for individual service accounts".to_owned());
        }
        _ => return None,
    };
    if name.is_empty() {
        return Some("No Object name found".to_owned());
    }
    let is_related = pods().iter().any(|pod| {
        meta::text(pod, "/spec/nodeName") == node
            && meta::namespace(pod) == target.namespace()
            && names(pod, subject, &name)
    });
    (!is_related).then(|| format!("no relationship found between node '{node}' and this object"))
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
            (List, "/api/v1/services", None),
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
}
