//! The positions of all fields of one document, built only if an error has to be shown.

use crate::Position;
use crate::parse::options;
use crate::path::Step;
use crate::syntax_error::position_of;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;

/// The positions of a value and its parts, relative to the document's first line.
#[derive(Debug)]
pub(crate) struct PositionTree {
    at: Option<Position>,
    parts: Parts,
}

#[derive(Debug)]
enum Parts {
    None,
    Items(Vec<PositionTree>),
    /// Key, the key's position, value.
    Fields(Vec<(String, Option<Position>, PositionTree)>),
}

/// Which end of a field to report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldPart {
    /// Its name, or the start of a list's item.
    Name,
    /// Its value.
    Value,
}

impl PositionTree {
    /// Parses `text` again. `None` if that fails, which does not happen for a text that was parsed
    /// before.
    pub(crate) fn of(text: &str) -> Option<Self> {
        serde_saphyr::from_str_with_options::<Spanned<Parts>>(text, options())
            .ok()
            .map(Self::from)
    }

    /// The position of the field at `steps`, or of its nearest existing parent.
    pub(crate) fn find(&self, steps: &[Step], aim: FieldPart) -> Option<Position> {
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
            let Some((child, position)) = next else { break };
            node = child;
            at = position.or(at);
        }
        at
    }

    fn field(&self, name: &str, aim: FieldPart) -> Option<(&Self, Option<Position>)> {
        let Parts::Fields(fields) = &self.parts else {
            return None;
        };
        let (_, key_at, value) = fields.iter().find(|(key, ..)| key == name)?;
        let position = match aim {
            FieldPart::Name => *key_at,
            FieldPart::Value => value.at.or(*key_at),
        };
        Some((value, position))
    }
}

impl From<Spanned<Parts>> for PositionTree {
    fn from(spanned: Spanned<Parts>) -> Self {
        Self {
            at: position_of(spanned.referenced),
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
        let mut fields: Vec<(String, Option<Position>, PositionTree)> = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let at = position_of(key.referenced);
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
