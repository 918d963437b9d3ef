//! Changes to a JSON object as the API's clients send them. Pure.

mod json;
mod strategic;

use serde_json::Value;

/// Why a change can't be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is not a valid patch of its type.
    #[error("{0}")]
    Malformed(String),
    /// It does not fit the object.
    #[error("{0}")]
    Unfit(String),
}

/// The object after a patch of that media type, as the API server applies it; `None` if the media
/// type is not a patch type.
///
/// # Errors
/// The body is not a valid patch of its type, or does not fit the object.
#[must_use]
pub fn patched(object: &Value, media_type: &str, body: &[u8]) -> Option<Result<Value, PatchError>> {
    let patch = Patch::read(media_type, body)?;
    Some(patch.and_then(|patch| patch.apply(object)))
}

/// A change, parsed and well-formed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Patch {
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own, which knows keys of lists.
    Strategic(Value),
    /// RFC 6902.
    Json(Vec<json::Operation>),
    /// A replacement of the whole object.
    Replace(Value),
}

impl Patch {
    /// Media types of patches, in the order of the API server.
    pub(crate) const MEDIA_TYPES: [&'static str; 3] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
    ];

    /// Reads the body of a PATCH; `None` if the media type is not a patch type.
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
            Self::Merge(patch) => {
                let mut merged = object.clone();
                json_patch::merge(&mut merged, patch);
                Ok(merged)
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patches_do_what_the_examples_of_the_rfc_say() {
        for (value, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b"}),
                json!({"b": "c"}),
                json!({"a": "b", "b": "c"}),
            ),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [{"b": "c"}]}),
                json!({"a": [1]}),
                json!({"a": [1]}),
            ),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (
                json!({"e": null}),
                json!({"a": 1}),
                json!({"e": null, "a": 1}),
            ),
            (
                json!([1, 2]),
                json!({"a": "b", "c": null}),
                json!({"a": "b"}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            let merged = Patch::Merge(patch.clone()).apply(&value);
            assert_eq!(merged.as_ref(), Ok(&result), "{value} {patch}");
        }
    }
}
