//! Decodes a parsed value into a type, and records every unknown field.
//!
//! Two rules of Go's decoder that Kubernetes users rely on: a field set to null counts as unset,
//! and names are case-sensitive. Values from programs are decoded with a third one: null is the
//! empty value of the expected type, in lists and maps too.

use crate::nearest::nearest;
use crate::path::Step;
use crate::wording::TypeError;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde_json::{Map, Value, map};
use std::cell::RefCell;

/// What a decoding found beside the value.
#[derive(Default)]
pub(crate) struct Findings {
    /// Unknown fields in document order, each with a message.
    pub(crate) unknown: Vec<(Vec<Step>, String)>,
    /// The innermost value that was being decoded when decoding failed.
    pub(crate) failed_at: Option<Vec<Step>>,
}

/// How values that a type does not expect are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Written by a user: unknown fields are recorded, a null in a list or map is an error.
    Written,
    /// Sent by a program: unknown fields are recorded, a null is the empty value.
    Sent,
    /// Like `Sent`, without recording unknown fields.
    SentByNewer,
}

/// Decodes `value`, which is at `start` in its document.
pub(crate) fn decode<T: de::DeserializeOwned>(
    value: &Value,
    start: &[Step],
    rules: Rules,
) -> (Result<T, TypeError>, Findings) {
    let walk = Walk {
        path: RefCell::new(start.to_vec()),
        findings: RefCell::default(),
        rules,
    };
    let result = T::deserialize(Node { value, walk: &walk });
    let mut findings = walk.findings.into_inner();
    if result.is_err() && findings.failed_at.is_none() {
        findings.failed_at = Some(start.to_vec());
    }
    (result, findings)
}

struct Walk {
    path: RefCell<Vec<Step>>,
    findings: RefCell<Findings>,
    rules: Rules,
}

/// serde_json's name of JSON that is kept unparsed.
const RAW: &str = "$serde_json::private::RawValue";

impl Walk {
    /// Decodes a part, one level deeper.
    fn part<'a, S: DeserializeSeed<'a>>(
        &'a self,
        step: Step,
        value: &'a Value,
        seed: S,
    ) -> Result<S::Value, TypeError> {
        self.path.borrow_mut().push(step);
        let result = seed.deserialize(Node { value, walk: self });
        if result.is_err() {
            let mut findings = self.findings.borrow_mut();
            findings
                .failed_at
                .get_or_insert_with(|| self.path.borrow().clone());
        }
        self.path.borrow_mut().pop();
        result
    }

    fn unknown(&self, key: &str, fields: &'static [&'static str]) {
        if self.rules == Rules::SentByNewer {
            return;
        }
        let mut path = self.path.borrow().clone();
        path.push(Step::Key(key.to_owned()));
        let message = match nearest(key, fields.iter().copied()) {
            Some(known) => format!("unknown field; did you mean {known:?}?"),
            None => "unknown field".to_owned(),
        };
        self.findings.borrow_mut().unknown.push((path, message));
    }
}

#[derive(Clone, Copy)]
struct Node<'a> {
    value: &'a Value,
    walk: &'a Walk,
}

impl<'a> Node<'a> {
    fn unexpected(self) -> Unexpected<'a> {
        match self.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Unexpected::Unsigned(value),
                (_, Some(value)) => Unexpected::Signed(value),
                _ => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        }
    }

    fn fields(
        self,
        map: &'a Map<String, Value>,
        known: Option<&'static [&'static str]>,
    ) -> Fields<'a> {
        Fields {
            entries: map.iter(),
            known,
            current: None,
            walk: self.walk,
        }
    }
}

impl Node<'_> {
    /// Whether this is a null that stands for the empty value.
    fn is_empty(self) -> bool {
        self.value.is_null() && self.walk.rules != Rules::Written
    }
}

/// Methods in which a null may mean an empty value.
macro_rules! empty_or_any {
    ($($method:ident: $visit:ident($empty:expr);)*) => {$(
        fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, TypeError> {
            match self.is_empty() {
                true => visitor.$visit($empty),
                false => self.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'a> Deserializer<'a> for Node<'a> {
    type Error = TypeError;

    empty_or_any! {
        deserialize_bool: visit_bool(false);
        deserialize_i8: visit_u64(0);
        deserialize_i16: visit_u64(0);
        deserialize_i32: visit_u64(0);
        deserialize_i64: visit_u64(0);
        deserialize_u8: visit_u64(0);
        deserialize_u16: visit_u64(0);
        deserialize_u32: visit_u64(0);
        deserialize_u64: visit_u64(0);
        deserialize_f32: visit_f64(0.0);
        deserialize_f64: visit_f64(0.0);
        deserialize_str: visit_borrowed_str("");
        deserialize_string: visit_borrowed_str("");
        deserialize_byte_buf: visit_borrowed_str("");
        deserialize_seq: visit_seq(NoItems);
        deserialize_map: visit_map(NoItems);
    }

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, TypeError> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => visitor.visit_u64(value),
                (_, Some(value)) => visitor.visit_i64(value),
                _ => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items {
                items: items.iter().enumerate(),
                walk: self.walk,
            }),
            Value::Object(map) => visitor.visit_map(self.fields(map, None)),
        }
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        match self.value {
            Value::Object(map) => visitor.visit_map(self.fields(map, Some(fields))),
            Value::Null if self.is_empty() => visitor.visit_map(NoItems),
            // A list would fill a derived struct by position, which no file intends.
            _ => Err(TypeError::not_a_mapping(name, self.unexpected())),
        }
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, TypeError> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        if name == RAW {
            let raw = self.value.deserialize_newtype_struct(name, visitor);
            return raw.map_err(de::Error::custom);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        match self.value {
            Value::String(text) => visitor.visit_enum(text.as_str().into_deserializer()),
            Value::Object(map) if map.len() == 1 => match map.iter().next() {
                Some((key, value)) => visitor.visit_enum(Variant {
                    key,
                    value,
                    walk: self.walk,
                }),
                None => Err(de::Error::invalid_type(self.unexpected(), &"a string")),
            },
            _ => Err(de::Error::invalid_type(self.unexpected(), &"a string")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, TypeError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'a>>
        i128 u128 char bytes unit unit_struct tuple tuple_struct identifier
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Value>>,
    walk: &'a Walk,
}

impl<'a> SeqAccess<'a> for Items<'a> {
    type Error = TypeError;

    fn next_element_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TypeError> {
        match self.items.next() {
            Some((index, value)) => self.walk.part(Step::Index(index), value, seed).map(Some),
            None => Ok(None),
        }
    }
}

/// An empty list or mapping.
struct NoItems;

impl<'a> SeqAccess<'a> for NoItems {
    type Error = TypeError;

    fn next_element_seed<S: DeserializeSeed<'a>>(
        &mut self,
        _: S,
    ) -> Result<Option<S::Value>, TypeError> {
        Ok(None)
    }
}

impl<'a> MapAccess<'a> for NoItems {
    type Error = TypeError;

    fn next_key_seed<S: DeserializeSeed<'a>>(
        &mut self,
        _: S,
    ) -> Result<Option<S::Value>, TypeError> {
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, _: S) -> Result<S::Value, TypeError> {
        Err(de::Error::custom("value asked for before key"))
    }
}

/// The entries of a mapping; for a struct, `known` holds the names of its fields.
struct Fields<'a> {
    entries: map::Iter<'a>,
    known: Option<&'static [&'static str]>,
    current: Option<(&'a str, &'a Value)>,
    walk: &'a Walk,
}

impl<'a> MapAccess<'a> for Fields<'a> {
    type Error = TypeError;

    fn next_key_seed<S: DeserializeSeed<'a>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TypeError> {
        for (key, value) in self.entries.by_ref() {
            if let Some(known) = self.known {
                if !known.contains(&key.as_str()) {
                    self.walk.unknown(key, known);
                    continue;
                }
                if value.is_null() && self.walk.rules == Rules::Written {
                    continue;
                }
            }
            self.current = Some((key, value));
            return seed.deserialize(key.as_str().into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'a>>(&mut self, seed: S) -> Result<S::Value, TypeError> {
        let (key, value) = self
            .current
            .take()
            .ok_or_else(|| de::Error::custom("value asked for before key"))?;
        self.walk.part(Step::Key(key.to_owned()), value, seed)
    }
}

struct Variant<'a> {
    key: &'a str,
    value: &'a Value,
    walk: &'a Walk,
}

impl<'a> EnumAccess<'a> for Variant<'a> {
    type Error = TypeError;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<(S::Value, Self), TypeError> {
        let name = seed.deserialize(self.key.into_deserializer())?;
        Ok((name, self))
    }
}

impl<'a> VariantAccess<'a> for Variant<'a> {
    type Error = TypeError;

    fn unit_variant(self) -> Result<(), TypeError> {
        Err(de::Error::custom(format_args!(
            "{:?} takes no value",
            self.key
        )))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'a>>(self, seed: S) -> Result<S::Value, TypeError> {
        self.walk
            .part(Step::Key(self.key.to_owned()), self.value, seed)
    }

    fn tuple_variant<V: Visitor<'a>>(self, _: usize, visitor: V) -> Result<V::Value, TypeError> {
        Node {
            value: self.value,
            walk: self.walk,
        }
        .deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'a>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeError> {
        Node {
            value: self.value,
            walk: self.walk,
        }
        .deserialize_struct("", fields, visitor)
    }
}
