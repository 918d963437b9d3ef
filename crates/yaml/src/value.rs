//! Values that are no text of a user: they come from a program that speaks JSON, and have no places.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{DecodeError, Decoded, decode, path};

/// Decodes a value and lists the fields that `T` does not know. Errors have no places and no snippets.
///
/// # Errors
/// A value has the wrong type, or a field that `T` needs is missing.
pub fn decode_value<T: DeserializeOwned>(value: &Value) -> Result<Decoded<T>, Box<DecodeError>> {
    let error = |steps: &[path::Step], message: String| DecodeError {
        document: 0,
        place: None,
        field: Some(path::format(steps)).filter(|path| !path.is_empty()),
        message,
        snippet: None,
    };
    let (result, findings) = decode::decode(value, &[]);
    match result {
        Ok(value) => {
            let unknown = findings.unknown.into_iter();
            Ok(Decoded {
                value,
                unknown: unknown
                    .map(|(steps, message)| error(&steps, message))
                    .collect(),
            })
        }
        Err(fault) => {
            let steps = findings.failed_at.unwrap_or_default();
            Err(Box::new(error(&steps, fault.0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Pod {
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        name: String,
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_named_by_their_path() {
        let value = json!({"items": [{"name": "a"}, {"name": "b", "colour": 1}], "extra": {}});
        let decoded = decode_value::<Pod>(&value).unwrap();
        assert_eq!(decoded.value.items[1].name, "b");
        let mut fields: Vec<_> = decoded
            .unknown
            .iter()
            .map(|error| error.field.as_deref().unwrap())
            .collect();
        fields.sort_unstable();
        assert_eq!(fields, ["extra", "items[1].colour"]);

        let error = decode_value::<Pod>(&json!({"items": [{"name": 7}]})).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("items[0].name"));
    }
}
