//! Common part of updates and patches.

use serde_json::Value;

use crate::{
    Kind, StatusError, event_conversion, meta,
    request::Request,
    state::ServerState,
    status_error::FieldError,
    strategy::{self, Context},
};

/// Changes an object; `mutate` receives it as the client sees it and returns the new one.
pub(super) fn change(
    shared: &ServerState,
    request: &Request,
    mutate: impl FnOnce(&Value) -> Result<Value, StatusError>,
) -> Result<Value, StatusError> {
    let (kind, target) = (request.kind(), &request.target);
    let config = shared.config();
    shared.with_store(|store| {
        let (namespace, name) = (target.namespace(), target.name());
        let old = store.get(kind.storage, namespace, name).cloned();
        let old = old.ok_or_else(|| StatusError::not_found(kind, name))?;
        let mut new = event_conversion::to_storage(
            kind,
            mutate(&event_conversion::from_storage(kind, &old))?,
        );
        meta::drop_nulls(&mut new);
        super::create::place(request, &mut new)?;
        identity(kind, name, &old, &mut new)?;
        let mut context = Context {
            user: &request.user,
            config: &config,
            now: shared.clock.now(),
            store,
            dice: &mut shared.dice(),
        };
        strategy::before_update(kind, target.subresource(), &old, &mut new, &mut context)?;
        if new == *old || request.is_dry_run() {
            return Ok(event_conversion::from_storage(kind, &new));
        }
        if kind.is("pods") {
            let moves = crate::oracle::backward_transitions(&old, &new);
            let mut oracle = shared.oracle();
            for what in moves {
                let what = format!("{what} (by {})", request.user.name);
                oracle.violated(shared.clock.elapsed(), &new, what);
            }
        }
        let is_over = meta::is_deleting(&new)
            && meta::entries(&new, "/metadata/finalizers").is_empty()
            && meta::number(&new, "/metadata/deletionGracePeriodSeconds").unwrap_or(0) == 0
            && strategy::can_be_removed(kind, &new, store);
        let kept = store.put(kind.storage, new);
        if is_over {
            store.remove(kind.storage, namespace, name);
        }
        strategy::after_update(shared, kind, &kept, store);
        Ok(event_conversion::from_storage(kind, &kept))
    })
}

/// Restores the identity of the object, which no client can change. Checks the version if the new
/// object has one.
fn identity(kind: &Kind, name: &str, old: &Value, new: &mut Value) -> Result<(), StatusError> {
    if meta::name(new) != name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({}) does not match the name on the URL ({name})",
            meta::name(new)
        )));
    }
    let uid = meta::uid(new);
    if !uid.is_empty() && uid != meta::uid(old) {
        let cause = FieldError::invalid("metadata.uid", &uid.into(), "field is immutable");
        return Err(StatusError::invalid(kind, name, vec![cause]));
    }
    let version = meta::text(new, "/metadata/resourceVersion");
    if !version.is_empty() && version != meta::text(old, "/metadata/resourceVersion") {
        return Err(StatusError::modified(kind, name));
    }
    let (new, old) = (&mut new["metadata"], &old["metadata"]);
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ] {
        meta::copy_field(new, old, field);
    }
    if let Some(fields) = new.as_object_mut() {
        fields.remove("managedFields");
        fields.remove("selfLink");
    }
    Ok(())
}
