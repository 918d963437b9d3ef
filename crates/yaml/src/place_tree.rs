//! The places of all fields of one document, built only when a mistake has to be shown.

use crate::Place;
use crate::fault::place_of;
use crate::parse::options;
use crate::path::Step;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

/// A value's place and those of its parts. Relative to the document's first line.
#[derive(Debug)]
pub(crate) struct PlaceTree {
    at: Option<Place>,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    None,
    Items(Vec<PlaceTree>),
    /// Key, the key's place, value.
    Fields(Vec<(String, Option<Place>, PlaceTree)>),
}

/// Which end of a field to point at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Its name, or the begin of a list's item.
    Name,
    /// Its value.
    Value,
}

impl PlaceTree {
    /// Parses `text` once more. `None` if that fails, which a text that gave a value does not.
    pub(crate) fn of(text: &str) -> Option<Self> {
        serde_saphyr::from_str_with_options::<Spanned<Parts>>(text, options())
            .ok()
            .map(Self::from)
    }

    /// The place of the field that `steps` lead to, or of the nearest part of the way that exists.
    pub(crate) fn find(&self, steps: &[Step], aim: Aim) -> Option<Place> {
        let mut node = self;
        let mut at = self.at;
        for step in steps {
            let next = match (&node.parts, step) {
                (Parts::Items(items), Step::Index(index)) => {
                    items.get(*index).map(|item| (item, item.at))
                }
                (Parts::Fields(_), Step::Index(index)) => node.field(&index.to_string(), aim),
                (Parts::Fields(_), Step::Key(key)) => node.field(key, aim),
                _ => None,
            };
            let Some((child, place)) = next else { break };
            node = child;
            at = place.or(at);
        }
        at
    }

    fn field(&self, name: &str, aim: Aim) -> Option<(&Self, Option<Place>)> {
        let Parts::Fields(fields) = &self.parts else {
            return None;
        };
        let (_, key_at, value) = fields.iter().find(|(key, ..)| key == name)?;
        let place = match aim {
            Aim::Name => *key_at,
            Aim::Value => value.at.or(*key_at),
        };
        Some((value, place))
    }
}

impl From<Spanned<Parts>> for PlaceTree {
    fn from(spanned: Spanned<Parts>) -> Self {
        Self {
            at: place_of(spanned.referenced),
            parts: spanned.value,
        }
    }
}

impl<'de> Deserialize<'de> for Parts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PartsVisitor)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Parts, E> {
        Ok(Parts::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Parts, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Parts>>()? {
            list.push(item.into());
        }
        Ok(Parts::Items(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Parts, A::Error> {
        let mut fields: Vec<(String, Option<Place>, PlaceTree)> = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let at = place_of(key.referenced);
            if fields.iter().any(|(known, ..)| *known == key.value) {
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = entries.next_value::<Spanned<Parts>>()?;
            fields.push((key.value, at, value.into()));
        }
        Ok(Parts::Fields(fields))
    }
}
