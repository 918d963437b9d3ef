//! The node authorizer: a node may read its own object, its pods, and the objects that these reference, renew
//! its lease, and do what `NodeRules` allows to all nodes. Source of the rules and texts: upstream's Node
//! authorizer and `NodeRules`.

use std::sync::Arc;

use serde_json::Value;

use crate::{meta, query::Query, request::Verb, route::Target, selection, user::User};

/// Why a node may not make a request for objects; `None` if it may, or if the user is not a node.
/// `pods` are all that the server relates to nodes. An empty text is a denial without a reason.
pub(crate) fn denial(
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
            // NodeRestriction decides about individual pods.
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
        _ => return (!is_allowed_to_all_nodes(target, verb)).then(String::new),
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

/// Nodes read their own object, and write what NodeRestriction allows.
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

/// A node has one lease. On creation its name is not known yet.
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

/// What all nodes may do: upstream's `NodeRules`, and what every authenticated user may.
fn is_allowed_to_all_nodes(target: &Target, verb: Verb) -> bool {
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

/// Kinds that a pod may reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Pod,
    Secret,
    ConfigMap,
    Account,
}

/// Whether a pod is, or references, this object. A mirror pod references nothing, because the node
/// itself created it.
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
        _ => contains_reference(&pod["spec"], subject, name),
    }
}

/// Whether a part of a pod's spec references a secret or config map of this name.
fn contains_reference(value: &Value, subject: Subject, name: &str) -> bool {
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
        Value::Array(items) => items
            .iter()
            .any(|item| contains_reference(item, subject, name)),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let mut references = references.iter().filter(|(field, _)| field == key);
            references.any(|(_, place)| meta::text(value, place) == name)
                || (key == "imagePullSecrets"
                    && subject == Subject::Secret
                    && value.as_array().is_some_and(|list| {
                        list.iter().any(|one| meta::text(one, "/name") == name)
                    }))
                || contains_reference(value, subject, name)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
