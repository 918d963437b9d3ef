//! Subresources that are created: bindings, evictions, tokens.

mod token;

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    Kind, StatusError, meta,
    request::Request,
    state::ServerState,
    store::Store,
    strategy,
    verb::{DeleteOptions, delete_object},
};

/// Handles the creation of a subresource.
pub(crate) fn create(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    match (request.kind().storage, request.target.subresource()) {
        ("pods", "binding") => bind(shared, request),
        ("pods", "eviction") => evict(shared, request),
        ("serviceaccounts", "token") => token::create(shared, request),
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn success() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "code": StatusCode::CREATED.as_u16(),
    })
}

fn bind(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    let binding = request.object("v1", "Binding")?;
    let node = meta::text(&binding, "/target/name");
    if node.is_empty() {
        return Err(StatusError::bad_request("target.name: Required value"));
    }
    let (kind, target) = (request.kind(), &request.target);
    shared.with_store(|store| {
        bind_pod(
            shared,
            store,
            (kind, target.namespace(), target.name()),
            node,
        )
    })?;
    Ok(success())
}

/// Binds a pod, given by kind, namespace and name, to a node.
pub(crate) fn bind_pod(
    shared: &ServerState,
    store: &mut Store,
    (kind, namespace, name): (&Kind, &str, &str),
    node: &str,
) -> Result<(), StatusError> {
    let pod = store.get("pods", namespace, name).cloned();
    let pod = pod.ok_or_else(|| StatusError::not_found(kind, name))?;
    let bound = meta::text(&pod, "/spec/nodeName");
    if !bound.is_empty() {
        let why = format!("pod {name} is already assigned to node {bound:?}");
        return Err(StatusError::conflict(kind, name, &why));
    }
    if meta::is_deleting(&pod) {
        let why = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(StatusError::conflict(kind, name, &why));
    }
    store.put("pods", strategy::bind_pod(&pod, node, shared.clock.now()));
    Ok(())
}

fn evict(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    let eviction = request.object("", "Eviction")?;
    let mut options = DeleteOptions::default();
    if let Some(wanted) = eviction.get("deleteOptions") {
        options.take(wanted);
    }
    let target = &request.target;
    shared.with_store(|store| {
        let place = (target.kind, target.namespace(), target.name());
        delete_object(shared, store, &request.user, place, &options)
    })?;
    Ok(success())
}
