//! Lists the fields of a type by deserialising it from a source that answers every question with a
//! value of the wished form, and notes what was asked for.

use std::{cell::RefCell, collections::BTreeSet, fmt};

use k8s_openapi::api::core::v1::Pod;
use serde::{
    Deserialize,
    de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor},
};

/// The paths of all leaves of a v1 Pod without `status`: `[]` behind a list, `{}` behind a map.
pub(crate) fn leaves() -> BTreeSet<String> {
    let found = RefCell::new(BTreeSet::new());
    Pod::deserialize(Source {
        path: String::new(),
        newtype: "",
        found: &found,
    })
    .expect("the source answers every question");
    found.into_inner()
}

struct Source<'a> {
    path: String,
    /// The newtype around the value, if any: some take only texts of their own form.
    newtype: &'static str,
    found: &'a RefCell<BTreeSet<String>>,
}

#[derive(Debug)]
pub(crate) struct RecorderError(String);

impl fmt::Display for RecorderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RecorderError {}

impl de::Error for RecorderError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

impl Source<'_> {
    fn leaf(&self) {
        self.found.borrow_mut().insert(self.path.clone());
    }

    fn below(&self, step: &str) -> Self {
        Self {
            path: format!("{}{step}", self.path),
            newtype: "",
            found: self.found,
        }
    }
}

macro_rules! scalars {
    ($($method:ident => $visit:ident($value:expr);)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecorderError> {
            self.leaf();
            visitor.$visit($value)
        })*
    };
}

impl<'de> Deserializer<'de> for Source<'_> {
    type Error = RecorderError;

    scalars! {
        deserialize_bool => visit_bool(true);
        deserialize_i32 => visit_i32(1);
        deserialize_i64 => visit_i64(1);
        deserialize_f64 => visit_f64(1.0);
        deserialize_any => visit_i32(1);
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecorderError> {
        self.leaf();
        match (self.newtype, self.path.as_str()) {
            ("Time" | "MicroTime", _) => visitor.visit_str("2024-01-01T00:00:00Z"),
            (_, "apiVersion") => visitor.visit_str("v1"),
            (_, "kind") => visitor.visit_str("Pod"),
            _ => visitor.visit_str("a"),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecorderError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecorderError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, RecorderError> {
        visitor.visit_newtype_struct(Self {
            newtype: name,
            ..self
        })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecorderError> {
        visitor.visit_seq(Once {
            item: Some(self.below("[]")),
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RecorderError> {
        visitor.visit_map(Entries {
            names: vec!["a"].into_iter(),
            step: Some("{}"),
            current: "",
            source: self,
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RecorderError> {
        let mut names = fields.to_vec();
        if name == "PodStatus" {
            // A manifest's status is dropped as a whole.
            self.leaf();
            names.clear();
        }
        let names = names.into_iter();
        visitor.visit_map(Entries {
            names,
            step: None,
            current: "",
            source: self,
        })
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u32 u64 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct
        enum identifier ignored_any
    }
}

struct Once<'a> {
    item: Option<Source<'a>>,
}

impl<'de> SeqAccess<'de> for Once<'_> {
    type Error = RecorderError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, RecorderError> {
        self.item
            .take()
            .map(|item| seed.deserialize(item))
            .transpose()
    }
}

struct Entries<'a> {
    names: std::vec::IntoIter<&'static str>,
    step: Option<&'static str>,
    current: &'static str,
    source: Source<'a>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = RecorderError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, RecorderError> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        self.current = name;
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, RecorderError> {
        let dot = if self.source.path.is_empty() { "" } else { "." };
        let own = format!("{dot}{}", self.current);
        seed.deserialize(self.source.below(self.step.unwrap_or(&own)))
    }
}
