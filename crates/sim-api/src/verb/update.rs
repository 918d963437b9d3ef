//! Replacement of a whole object (PUT).

use super::{Reply, change::change, create::create_object};
use crate::{
    StatusError, event_conversion, meta, request::Request, state::ServerState,
    status_error::FieldError,
};

pub(super) fn update(shared: &ServerState, request: &Request) -> Result<Reply, StatusError> {
    let (kind, target) = (request.kind(), &request.target);
    if target.name.is_none() || ["binding", "eviction", "log"].contains(&target.subresource()) {
        return Err(StatusError::method_not_allowed());
    }
    let object = request.object(&kind.api_version(), kind.kind)?;
    if kind.creates_on_update {
        let is_there = shared.with_store(|store| {
            store
                .get(kind.storage, target.namespace(), target.name())
                .is_some()
        });
        if !is_there {
            if meta::name(&object) != target.name() {
                let message = "the name of the object does not match the name on the URL";
                return Err(StatusError::bad_request(message));
            }
            let made = create_object(shared, request, event_conversion::to_storage(kind, object))?;
            return Ok(Reply::created(made));
        }
    }
    // Leases can't be updated without a version.
    if kind.is("leases") && meta::version(&object) == 0 {
        let cause = FieldError::invalid(
            "metadata.resourceVersion",
            &0.into(),
            "must be specified for an update",
        );
        return Err(StatusError::invalid(kind, target.name(), vec![cause]));
    }
    let uid = meta::uid(&object).to_owned();
    change(shared, request, |old| {
        if !uid.is_empty() && uid != meta::uid(old) {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                meta::uid(old)
            );
            return Err(StatusError::conflict(kind, target.name(), &why));
        }
        Ok(object)
    })
    .map(Reply::ok)
}
