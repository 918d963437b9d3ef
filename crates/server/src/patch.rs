//! Changes to a JSON object as the API's clients send them. Pure.

mod json;
mod merge;
mod strategic;

use serde_json::Value;

/// Why a change can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch of its kind.
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the object.
    #[error("{0}")]
    Unfit(String),
}

/// The object after a patch of that media type, as the API server applies it; `None` for a media type
/// that is no patch.
///
/// # Errors
/// The body is no patch of its kind, or does not fit the object.
#[must_use]
pub fn patched(object: &Value, media_type: &str, body: &[u8]) -> Option<Result<Value, PatchError>> {
    let patch = Patch::read(media_type, body)?;
    Some(patch.and_then(|patch| patch.apply(object)))
}

/// A change, read and found well-formed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Patch {
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own, which knows keys of lists.
    Strategic(Value),
    /// RFC 6902.
    Json(Vec<json::Operation>),
    /// The whole object anew.
    Replace(Value),
}

impl Patch {
    /// Media types of patches, in the order of the API server.
    pub(crate) const MEDIA_TYPES: [&'static str; 3] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];

    /// Reads the body of a PATCH; `None` for a media type that is no patch.
    pub(crate) fn read(media_type: &str, body: &[u8]) -> Option<Result<Self, PatchError>> {
        Some(match media_type {
            "application/json-patch+json" => json::read(body).map(Self::Json),
            "application/merge-patch+json" => object(body).map(Self::Merge),
            "application/strategic-merge-patch+json" => object(body).map(Self::Strategic),
            _ => return None,
        })
    }

    /// Reads the body of a PUT.
    pub(crate) fn replacement(body: &[u8]) -> Result<Self, PatchError> {
        object(body).map(Self::Replace)
    }

    /// The object after the change.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value, PatchError> {
        match self {
            Self::Merge(patch) => Ok(merge::apply(object.clone(), patch)),
            Self::Strategic(patch) => strategic::apply(object, patch),
            Self::Json(operations) => json::apply(object.clone(), operations),
            Self::Replace(new) => Ok(new.clone()),
        }
    }
}

fn object(body: &[u8]) -> Result<Value, PatchError> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(PatchError::Malformed(
            "the body must be a JSON object".to_owned(),
        )),
        Err(error) => Err(PatchError::Malformed(format!(
            "the body is not JSON: {error}"
        ))),
    }
}
