//! Creation.

use serde_json::Value;

use crate::{
    StatusError, clock, event_conversion, meta,
    request::Request,
    review,
    state::ServerState,
    store::Store,
    strategy::{self, Context},
    subresource,
};

pub(super) fn create(shared: &ServerState, request: &Request) -> Result<Value, StatusError> {
    let (kind, target) = (request.kind(), &request.target);
    if target.subresource.is_some() {
        return subresource::create(shared, request);
    }
    if target.name.is_some() {
        return Err(StatusError::method_not_allowed());
    }
    let object = request.object(&kind.api_version(), kind.kind)?;
    if kind.is_review {
        return review::create(shared, request, object);
    }
    create_object(shared, request, event_conversion::to_storage(kind, object))
}

/// Maximum length of the used part of `generateName`.
const LONGEST_BASE: usize = 58;

/// Creates an object, given in its stored form; returns it in the request's kind.
pub(super) fn create_object(
    shared: &ServerState,
    request: &Request,
    mut object: Value,
) -> Result<Value, StatusError> {
    let (kind, target) = (request.kind(), &request.target);
    meta::drop_nulls(&mut object);
    place(request, &mut object)?;
    let config = shared.config();
    let now = shared.clock.now();
    shared.with_store(|store| {
        let mut dice = shared.dice();
        let dice = &mut *dice;
        let generate = meta::text(&object, "/metadata/generateName").to_owned();
        if meta::name(&object).is_empty() && !generate.is_empty() {
            let base: String = generate.chars().take(LONGEST_BASE).collect();
            let name = format!("{base}{}", dice.suffix());
            object["metadata"]["name"] = name.into();
        }
        strategy::check_name(kind, &object)?;
        let name = meta::name(&object).to_owned();
        namespace_is_open(store, request, &name)?;
        if store.get(kind.storage, target.namespace(), &name).is_some() {
            return Err(StatusError::already_exists(kind, &name));
        }
        let metadata = meta::fields(&mut object, "metadata");
        for field in [
            "resourceVersion",
            "selfLink",
            "deletionTimestamp",
            "generation",
        ] {
            metadata.remove(field);
        }
        metadata.remove("deletionGracePeriodSeconds");
        metadata.remove("managedFields");
        metadata.insert("uid".to_owned(), dice.uid().into());
        metadata.insert("creationTimestamp".to_owned(), clock::seconds(now).into());
        let mut context = Context {
            user: &request.user,
            config: &config,
            now,
            store,
            dice,
        };
        strategy::before_create(kind, &mut object, &mut context)?;
        if request.is_dry_run() {
            return Ok(event_conversion::from_storage(kind, &object));
        }
        let made = store.put(kind.storage, object);
        strategy::after_create(shared, kind, &made, store, dice, now);
        Ok(event_conversion::from_storage(kind, &made))
    })
}

/// Sets the namespace of the path and the type of the object.
pub(super) fn place(request: &Request, object: &mut Value) -> Result<(), StatusError> {
    let (kind, target) = (request.kind(), &request.target);
    object["apiVersion"] = event_conversion::storage_api_version(kind).into();
    object["kind"] = kind.kind.into();
    let found = meta::namespace(object).to_owned();
    let metadata = meta::fields(object, "metadata");
    match &target.namespace {
        Some(namespace) if found.is_empty() => {
            metadata.insert("namespace".to_owned(), namespace.as_str().into());
        }
        Some(namespace) if *namespace != found => {
            return Err(StatusError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
        None if kind.namespaced => {
            let message = "an empty namespace may not be set during creation";
            return Err(StatusError::bad_request(message));
        }
        None => {
            metadata.remove("namespace");
        }
        Some(_) => {}
    }
    Ok(())
}

fn namespace_is_open(store: &Store, request: &Request, name: &str) -> Result<(), StatusError> {
    let Some(namespace) = &request.target.namespace else {
        return Ok(());
    };
    let namespaces = crate::Kind::of("namespaces").expect("it is in the table");
    match store.get("namespaces", "", namespace) {
        None => Err(StatusError::not_found(namespaces, namespace)),
        Some(found) if meta::is_deleting(found) => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being \
                 terminated"
            );
            Err(StatusError::forbidden(request.kind(), name, &why))
        }
        Some(_) => Ok(()),
    }
}
