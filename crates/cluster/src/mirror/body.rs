//! The mirror pod of a static pod.

use rubelet_api::{
    annotations::{CONFIG_HASH, CONFIG_MIRROR},
    pod::Pod,
};
use serde_json::{Value, json};

/// Fields of a pod that only an API server may set.
const NOT_OURS: [&str; 7] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The pod to create: as the static one, owned by its node. That the node is the owner is what
/// allows a node to create it (KEP-1314).
pub(super) fn body(pod: &Pod, node_name: &str, node_uid: &str) -> Value {
    let mut body: Value = serde_json::from_str(&pod.json).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("status");
    }
    let metadata = &mut body["metadata"];
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|field, _| !NOT_OURS.contains(&&**field));
    }
    // The same value in both, as the kubelet writes them: others compare them.
    let hash = pod.annotations.get(CONFIG_HASH);
    metadata["annotations"][CONFIG_MIRROR] = hash.map(|hash| &**hash).into();
    metadata["ownerReferences"] = json!([{
        "apiVersion": "v1",
        "kind": "Node",
        "name": node_name,
        "uid": node_uid,
        "controller": true,
    }]);
    body
}
