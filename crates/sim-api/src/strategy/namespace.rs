//! Namespaces, and the objects that each of them has by default.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{authority::Authority, clock, dice::Dice, meta, store::Store};

pub(super) fn before_create(object: &mut Value) {
    object["spec"] = json!({ "finalizers": ["kubernetes"] });
    object["status"] = json!({ "phase": "Active" });
    let name = meta::name(object).to_owned();
    let metadata = &mut object["metadata"];
    meta::fields(metadata, "labels").insert("kubernetes.io/metadata.name".to_owned(), name.into());
}

/// Creates the default service account and the config map with the authority's certificate, as the
/// controllers do in every namespace.
pub(crate) fn create_default_objects(
    namespace: &str,
    authority: &Authority,
    store: &mut Store,
    dice: &mut Dice,
    now: Timestamp,
) {
    let mut metadata = |name: &str| {
        json!({
            "name": name,
            "namespace": namespace,
            "uid": dice.uid(),
            "creationTimestamp": clock::seconds(now),
        })
    };
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata("default"),
    });
    let root = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata("kube-root-ca.crt"),
        "data": { "ca.crt": authority.pem() },
    });
    store.put("serviceaccounts", account);
    store.put("configmaps", root);
}
