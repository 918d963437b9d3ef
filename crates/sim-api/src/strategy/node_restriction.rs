//! NodeRestriction: nodes may only change their own objects. Source of the rules and texts:
//! upstream's admission plugin NodeRestriction.

use serde_json::Value;

use crate::{Kind, StatusError, meta, user::User};

/// Checks a creation.
pub(super) fn create(kind: &Kind, object: &Value, user: &User) -> Result<(), StatusError> {
    let Some(node) = user.node_name() else {
        return Ok(());
    };
    let name = meta::name(object);
    let refused = |why: String| Err(StatusError::forbidden(kind, name, &why));
    match kind.storage {
        "nodes" if name != node => refused(format!(
            "node {node:?} is not allowed to modify node {name:?}"
        )),
        "pods" if object.pointer(MIRROR).is_none() => refused(format!(
            "pod does not have {ANNOTATION:?} annotation, node {node:?} can only \
                             create mirror pods"
        )),
        "pods" if meta::text(object, "/spec/nodeName") != node => refused(format!(
            "node {node:?} can only create pods with spec.nodeName set to itself"
        )),
        "leases" => lease(kind, object, node),
        _ => Ok(()),
    }
}

const ANNOTATION: &str = "kubernetes.io/config.mirror";
const MIRROR: &str = "/metadata/annotations/kubernetes.io~1config.mirror";

/// Checks a change.
pub(super) fn update(
    kind: &Kind,
    subresource: &str,
    old: &Value,
    new: &Value,
    user: &User,
) -> Result<(), StatusError> {
    let Some(node) = user.node_name() else {
        return Ok(());
    };
    let name = meta::name(old);
    let refused = |why: String| Err(StatusError::forbidden(kind, name, &why));
    match (kind.storage, subresource) {
        ("nodes", _) if name != node => refused(format!(
            "node {node:?} is not allowed to modify node {name:?}"
        )),
        ("nodes", _)
            if subresource != "status" && old["spec"]["taints"] != new["spec"]["taints"] =>
        {
            refused(format!("node {node:?} is not allowed to modify taints"))
        }
        ("pods", "status") if meta::text(old, "/spec/nodeName") != node => refused(format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        )),
        ("pods", "status") if old["metadata"]["labels"] != new["metadata"]["labels"] => refused(
            format!("node {node:?} cannot update labels through pod status"),
        ),
        ("pods", "") => refused(format!(
            "unexpected operation \"UPDATE\", node {node:?} can only \
                                         create and delete mirror pods"
        )),
        ("leases", _) => lease(kind, old, node),
        _ => Ok(()),
    }
}

/// Checks a removal.
pub(crate) fn delete(kind: &Kind, object: &Value, user: &User) -> Result<(), StatusError> {
    let Some(node) = user.node_name() else {
        return Ok(());
    };
    let name = meta::name(object);
    let refused = |why: String| Err(StatusError::forbidden(kind, name, &why));
    match kind.storage {
        "nodes" if name != node => refused(format!(
            "node {node:?} is not allowed to modify node {name:?}"
        )),
        "pods" if meta::text(object, "/spec/nodeName") != node => refused(format!(
            "node {node:?} can only delete pods with spec.nodeName set to itself"
        )),
        "leases" => lease(kind, object, node),
        _ => Ok(()),
    }
}

fn lease(kind: &Kind, object: &Value, node: &str) -> Result<(), StatusError> {
    let name = meta::name(object);
    let why = if meta::namespace(object) != "kube-node-lease" {
        "can only access leases in the \"kube-node-lease\" system namespace"
    } else if name != node {
        "can only access node lease with the same name as the requesting node"
    } else {
        return Ok(());
    };
    Err(StatusError::forbidden(kind, name, why))
}
