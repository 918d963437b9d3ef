//! An object of the API as JSON, without the part that no node component reads.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Map, Value};

/// An object of the API as JSON without `metadata.managedFields`, which is often half of it and is
/// skipped while reading.
#[derive(Debug, Clone, PartialEq)]
pub struct Object(pub Value);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let level = Level::Object;
        deserializer
            .deserialize_map(level)
            .map(|map| Self(Value::Object(map)))
    }
}

/// The position in the object of a map that is being read.
#[derive(Clone, Copy)]
enum Level {
    Object,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self).map(Value::Object)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object",
            Self::Metadata => "the metadata of an object",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = match (self, key.as_str()) {
                (Self::Object, "metadata") => access.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => {
                    access.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => access.next_value()?,
            };
            if map.insert(key, value).is_some() {
                return Err(de::Error::custom("a field occurs twice"));
            }
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn managed_fields_are_left_out_and_nothing_else() {
        let text = json!({
            "kind": "Pod",
            "metadata": {"name": "a", "managedFields": [{"x": {}}], "labels": {"managedFields": "b"}},
            "spec": {"managedFields": 1, "list": [1.5, null, true]},
        });
        let object: Object = serde_json::from_str(&text.to_string()).unwrap();
        let mut expected = text;
        expected["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        assert_eq!(object.0, expected);
    }

    #[test]
    fn an_invalid_object_is_refused() {
        for text in ["[]", "1", r#"{"metadata": 1}"#, r#"{"a": 1, "a": 2}"#] {
            assert!(serde_json::from_str::<Object>(text).is_err(), "{text}");
        }
    }
}
