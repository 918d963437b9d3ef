//! Strategies of kinds: defaults, validation, and effects of changes.

mod certificate;
mod event;
mod lease;
mod name;
mod namespace;
mod node;
mod node_restriction;
mod pod;
mod secret;
mod service;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    Kind, SimApiConfig, StatusError, dice::Dice, meta, state::ServerState,
    status_error::FieldError, store::Store, user::User,
};

pub(crate) use self::{
    name::check as check_name, namespace::create_default_objects as create_namespace_objects,
    node::NOT_READY, node_restriction::delete as check_node_may_delete, pod::bind as bind_pod,
};

/// Inputs of the strategies.
pub(crate) struct Context<'a> {
    pub(crate) user: &'a User,
    pub(crate) config: &'a SimApiConfig,
    pub(crate) now: Timestamp,
    pub(crate) store: &'a Store,
    pub(crate) dice: &'a mut Dice,
}

/// Sets defaults of a new object and validates it.
pub(crate) fn before_create(
    kind: &'static Kind,
    object: &mut Value,
    context: &mut Context<'_>,
) -> Result<(), StatusError> {
    match kind.storage {
        "pods" => pod::before_create(kind, object, context)?,
        "nodes" => {
            node::before_create(object, context);
            node::set_stored_defaults(object);
        }
        "events" => event::before_create(kind, object)?,
        "leases" => lease::check(kind, object)?,
        "secrets" => secret::before_create(object),
        "services" => service::before_create(object, context),
        "namespaces" => namespace::before_create(object),
        "certificatesigningrequests" => certificate::before_create(kind, object, context)?,
        _ => {}
    }
    if context.config.node_restriction {
        node_restriction::create(kind, object, context.user)?;
    }
    Ok(())
}

/// Effects of a creation.
pub(crate) fn after_create(
    shared: &ServerState,
    kind: &'static Kind,
    object: &Value,
    store: &mut Store,
    dice: &mut Dice,
    now: Timestamp,
) {
    match kind.storage {
        "namespaces" => namespace::create_default_objects(
            meta::name(object),
            &shared.authority,
            store,
            dice,
            now,
        ),
        "certificatesigningrequests" => certificate::sign(shared, object, store),
        _ => {}
    }
}

/// Restores the fields that this request can't change, and validates the others.
pub(crate) fn before_update(
    kind: &'static Kind,
    subresource: &str,
    old: &Value,
    new: &mut Value,
    context: &mut Context<'_>,
) -> Result<(), StatusError> {
    if context.config.node_restriction {
        node_restriction::update(kind, subresource, old, new, context.user)?;
    }
    match (kind.storage, subresource) {
        ("pods", "") => return pod::before_update(kind, old, new),
        ("pods", "status") => return pod::before_status(kind, old, new),
        ("pods", "ephemeralcontainers") => return pod::before_ephemeral(kind, old, new),
        ("certificatesigningrequests", _) => {
            return certificate::before_update(kind, subresource, old, new, context);
        }
        ("namespaces", "finalize") => {
            meta::copy_field(new, old, "status");
            return Ok(());
        }
        ("events", "") => event::before_update(kind, old, new)?,
        ("leases", "") => lease::check(kind, new)?,
        ("secrets", "") => secret::before_update(old, new),
        ("nodes", _) => node::set_stored_defaults(new),
        _ => {}
    }
    if ["configmaps", "secrets"].contains(&kind.storage) {
        immutable(kind, old, new)?;
    }
    match subresource {
        "status" => {
            meta::copy_field(new, old, "spec");
            Ok(())
        }
        "" => {
            if kind.has("status") {
                meta::copy_field(new, old, "status");
            }
            Ok(())
        }
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn immutable(kind: &Kind, old: &Value, new: &Value) -> Result<(), StatusError> {
    if !meta::flag(old, "/immutable") {
        return Ok(());
    }
    let changed = ["data", "binaryData", "immutable"]
        .into_iter()
        .find(|field| old.get(field) != new.get(field));
    let Some(field) = changed else {
        return Ok(());
    };
    let cause = FieldError::forbidden(field, "field is immutable when `immutable` is set");
    Err(StatusError::invalid(kind, meta::name(old), vec![cause]))
}

/// Effects of an update.
pub(crate) fn after_update(shared: &ServerState, kind: &Kind, object: &Value, store: &mut Store) {
    if kind.is("certificatesigningrequests") {
        certificate::sign(shared, object, store);
    }
}

/// Effects of a removal.
pub(crate) fn after_delete(kind: &Kind, object: &Value, store: &mut Store) {
    let namespace = meta::namespace(object);
    let is_ending = store
        .get("namespaces", "", namespace)
        .is_some_and(|found| meta::is_deleting(found));
    if kind.namespaced && is_ending && store.is_namespace_empty(namespace) {
        store.remove("namespaces", "", namespace);
    }
}

/// Whether an object that is being deleted is removed as soon as it has no finalizers.
pub(crate) fn can_be_removed(kind: &Kind, object: &Value, store: &Store) -> bool {
    if kind.is("namespaces") {
        return store.is_namespace_empty(meta::name(object));
    }
    true
}

/// Increments `metadata.generation`, for kinds that have one.
pub(crate) fn next_generation(object: &mut Value) {
    if let Some(generation) = meta::number(object, "/metadata/generation").filter(|n| *n > 0) {
        object["metadata"]["generation"] = json!(generation + 1);
    }
}
