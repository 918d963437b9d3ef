//! Patches as the API server applies them. Nothing is shared with the product, so that the two can't have the
//! same bug.
//!
//! Source of rules, codes and texts: upstream's `handlers/patch.go`, `util/strategicpatch`, and the JSON patch
//! library that it uses (evanphx, version 4).

mod json;
mod merge_keys;
mod strategic;

use http::StatusCode;
use serde_json::Value;

use crate::{Kind, StatusError};

/// Media types of patches, for the error about other ones.
const MEDIA_TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
                           application/strategic-merge-patch+json";

/// Why a patch can't be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PatchError {
    /// It is malformed: 400.
    Malformed(String),
    /// It can't be applied to the object: 422. The API server gives no reason, so the text is for tests
    /// only.
    Inapplicable(String),
    /// Too many operations: 413.
    TooLarge(String),
    /// An error to which upstream assigns no code: 500 without a reason.
    Unknown(String),
}

impl From<PatchError> for StatusError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Malformed(message) => Self::bad_request(message),
            PatchError::Inapplicable(_) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid",
                "the server rejected our request due to an error in our request",
            ),
            PatchError::TooLarge(message) => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "RequestEntityTooLarge",
                format!("Request entity too large: {message}"),
            ),
            PatchError::Unknown(message) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
            }
        }
    }
}

/// Applies a patch of this media type to an object.
pub(crate) fn patched(
    kind: &Kind,
    object: &Value,
    media_type: &str,
    body: &[u8],
) -> Result<Value, StatusError> {
    let result = match media_type {
        "application/json-patch+json" => json::apply(object, body),
        "application/merge-patch+json" => merge(object, body),
        "application/strategic-merge-patch+json" => strategic::apply(kind, object, body),
        _ => return Err(StatusError::unsupported_media_type(MEDIA_TYPES)),
    };
    Ok(result?)
}

/// JSON merge patch (RFC 7386).
fn merge(object: &Value, body: &[u8]) -> Result<Value, PatchError> {
    let patch = decoded(body)?;
    let mut object = object.clone();
    json_patch::merge(&mut object, &patch);
    Ok(object)
}

/// The body as a JSON object.
fn decoded(body: &[u8]) -> Result<Value, PatchError> {
    match serde_json::from_slice(body) {
        Ok(patch @ Value::Object(_)) => Ok(patch),
        Ok(other) => Err(PatchError::Malformed(format!(
            "Invalid JSON Patch: an object is expected, not {other}"
        ))),
        Err(error) => Err(PatchError::Malformed(format!(
            "error decoding patch: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests;
