//! JSON values from a program, not from a user's text: they have no positions.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{SkippedField, decode::Rules, path, received::read};

/// A decoded value, and its parts that did not fit.
#[derive(Debug)]
pub struct DecodedValue<T> {
    /// The value.
    pub value: T,
    /// Paths of fields that the type does not know.
    pub unknown: Vec<String>,
    /// Fields that could not be decoded; the value is the same as if they were absent.
    pub left_out: Vec<SkippedField>,
}

/// Decodes a value from a program: null, absent and empty are the same, and a field of the wrong
/// type is dropped, unless `needed` returns true for its path.
///
/// # Errors
/// A needed field has the wrong type, or a field that `T` requires is missing.
pub fn decode_value<T: DeserializeOwned>(
    value: &Value,
    needed: impl Fn(&str) -> bool,
) -> Result<DecodedValue<T>, SkippedField> {
    let (value, left_out, unknown) = read(value, Rules::Sent, needed)?;
    let unknown = unknown.iter().map(|(steps, _)| path::format(steps));
    Ok(DecodedValue {
        value,
        unknown: unknown.collect(),
        left_out,
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Pod {
        items: Vec<Item>,
        other: Vec<String>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        name: String,
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_named_by_their_path() {
        let value = json!({
            "items": [{"name": "a"}, {"name": "b", "colour": 1}],
            "other": 1,
            "extra": {},
        });
        let needed = |path: &str| path.starts_with("items");
        let mut decoded = decode_value::<Pod>(&value, needed).unwrap();
        assert_eq!(decoded.value.items[1].name, "b");
        assert!(decoded.value.other.is_empty());
        decoded.unknown.sort_unstable();
        assert_eq!(decoded.unknown, ["extra", "items[1].colour"]);
        assert_eq!(decoded.left_out[0].field, "other");

        let error = decode_value::<Pod>(&json!({"items": [{"name": 7}]}), needed).unwrap_err();
        assert_eq!(error.field, "items[0].name");
    }

    #[test]
    fn what_holds_something_needed_is_never_left_out() {
        let many: Vec<_> = (0..50)
            .map(|number| (number.to_string(), json!(1)))
            .collect();
        let value = json!({"maps": {"a": serde_json::Map::from_iter(many)}});
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct Maps {
            maps: std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>>,
        }
        let decoded = decode_value::<Maps>(&value, |_| false).unwrap();
        assert!(decoded.value.maps.is_empty());
        let error = decode_value::<Maps>(&value, |path| path == "maps.a").unwrap_err();
        assert_eq!(error.field, "maps.a");
    }
}
