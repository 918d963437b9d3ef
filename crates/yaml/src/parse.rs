//! Parses text into values.
//!
//! Unquoted scalars have the same types as in `sigs.k8s.io/yaml`: yes, no, on, off, y and n are
//! booleans, a leading zero means octal, and a float without a fraction becomes an integer, as in
//! Go's JSON encoder.

use crate::path::Step;
use crate::syntax_error::{SyntaxError, control_character};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Maximum number of events that aliases may add to one document; an alias bomb needs millions, a
/// real manifest few.
const MAX_REPLAYED_EVENTS: usize = 50_000;
/// Whole numbers up to here are exact in a float.
const EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

pub(crate) fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED_EVENTS,
        },
    }
}

/// Parses one document. Text that looks like JSON is parsed as JSON first, because YAML parsers
/// don't accept all of it; the YAML parser then provides the error message.
pub(crate) fn value(text: &str) -> Result<Value, SyntaxError> {
    if let Some(syntax_error) = control_character(text) {
        return Err(syntax_error);
    }
    let at = RefCell::default();
    let strict = Strict { at: &at };
    if text.trim_start().starts_with(['{', '[']) {
        let mut json = serde_json::Deserializer::from_str(text);
        if let Ok(value) = strict.deserialize(&mut json)
            && json.end().is_ok()
        {
            return Ok(value);
        }
        at.borrow_mut().clear();
    }
    serde_saphyr::with_deserializer_from_str_with_options(text, options(), |yaml| {
        strict.deserialize(yaml)
    })
    .map_err(|error| SyntaxError::of(&error, text, at.take()))
}

/// Deserializes any value whose mappings have unique keys. After an error `at` is the path to its
/// location.
#[derive(Clone, Copy)]
struct Strict<'a> {
    at: &'a RefCell<Vec<Step>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and in range"
    )]
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        if value.fract() == 0.0 && value.abs() < EXACT_FLOAT {
            return Ok((value as i64).into());
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("infinity and NaN are not allowed"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            self.at.borrow_mut().push(Step::Index(list.len()));
            let Some(item) = items.next_element_seed(self)? else {
                break;
            };
            self.at.borrow_mut().pop();
            list.push(item);
        }
        self.at.borrow_mut().pop();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.at.borrow_mut().push(Step::Key(key.clone()));
            if map.contains_key(&key) {
                return Err(de::Error::custom("field is given twice"));
            }
            let value = entries.next_value_seed(self)?;
            self.at.borrow_mut().pop();
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
