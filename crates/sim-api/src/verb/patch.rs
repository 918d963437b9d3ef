//! Patches: JSON, merge, strategic merge.

use rubelet_server::{PatchError, patched};

use super::{Reply, change::change};
use crate::{StatusError, request::Request, state::Shared};

const MEDIA_TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
                           application/strategic-merge-patch+json";

pub(super) fn patch(shared: &Shared, request: &Request) -> Result<Reply, StatusError> {
    let target = &request.target;
    if target.name.is_none() || ["binding", "eviction", "log"].contains(&target.subresource()) {
        return Err(StatusError::method_not_allowed());
    }
    let result = change(shared, request, |old| {
        let patched = patched(old, &request.media_type, &request.body)
            .ok_or_else(|| StatusError::unsupported_media_type(MEDIA_TYPES))?;
        patched.map_err(|error| match error {
            PatchError::Malformed(message) => StatusError::bad_request(message),
            PatchError::Unfit(message) => StatusError::new(
                http::StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                format!(
                    "the server rejected our request due to an error in our request: {message}"
                ),
            ),
        })
    });
    result.map(Reply::ok)
}
