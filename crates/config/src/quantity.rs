//! Quantities such as `100m`, `1.5`, `10Mi` or `2e6`, as far as a configuration needs them: syntax
//! and sign, not the value.
//!
//! Source of the rule: the grammar in the documentation of `k8s.io/apimachinery` `resource.Quantity`.

use crate::field::{FieldType, Kind};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use std::fmt;

/// A quantity as it was written. A number in the file is taken as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity(pub String);

impl FieldType for Quantity {
    const KIND: Kind = Kind::Quantity;
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 500m or 10Mi")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        match sign(text) {
            Some(_) => Ok(Quantity(text.to_owned())),
            None => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_u64<E>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Quantity, E> {
        Ok(Quantity(number.to_string()))
    }
}

/// Whether a quantity is below, at or above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Negative,
    Zero,
    Positive,
}

const SUFFIXES: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// The sign of a quantity, or `None` if `text` is not a quantity.
pub(crate) fn sign(text: &str) -> Option<Sign> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    if !SUFFIXES.contains(&suffix) && !is_exponent(suffix) {
        return None;
    }
    Some(match number.contains(|c| ('1'..='9').contains(&c)) {
        false => Sign::Zero,
        true if negative => Sign::Negative,
        true => Sign::Positive,
    })
}

fn is_exponent(suffix: &str) -> bool {
    suffix.strip_prefix(['e', 'E']).is_some_and(|digits| {
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{Sign, sign};

    #[test]
    fn quantities_are_distinguished_from_other_text() {
        for (text, expected) in [
            ("1", Some(Sign::Positive)),
            ("100m", Some(Sign::Positive)),
            ("1.5Gi", Some(Sign::Positive)),
            (".5", Some(Sign::Positive)),
            ("5.", Some(Sign::Positive)),
            ("+2e6", Some(Sign::Positive)),
            ("1E-3", Some(Sign::Positive)),
            ("3E", Some(Sign::Positive)),
            ("0", Some(Sign::Zero)),
            ("0.0Ki", Some(Sign::Zero)),
            ("-1", Some(Sign::Negative)),
            ("-0", Some(Sign::Zero)),
            ("", None),
            ("Mi", None),
            ("1KB", None),
            ("1 Gi", None),
            ("1.2.3", None),
            ("10%", None),
            ("1e", None),
        ] {
            assert_eq!(sign(text), expected, "{text}");
        }
    }
}
