//! Patches of objects.

use super::{Reply, change::change};
use crate::{StatusError, patch::patched, request::Request, state::ServerState};

pub(super) fn patch(shared: &ServerState, request: &Request) -> Result<Reply, StatusError> {
    let target = &request.target;
    if target.name.is_none() || ["binding", "eviction", "log"].contains(&target.subresource()) {
        return Err(StatusError::method_not_allowed());
    }
    let result = change(shared, request, |old| {
        patched(target.kind, old, &request.media_type, &request.body)
    });
    result.map(Reply::ok)
}
