//! Durations in files: strings in Go's notation.

use rubelet_base::duration::{format_go, parse_go};
use serde::de::{self, Deserializer, Visitor};
use serde::ser::Serializer;
use std::fmt;
use std::time::Duration;

/// Writes `1m0s`.
pub(crate) fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_go(*value))
}

/// Reads a string in Go's notation.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    deserializer.deserialize_str(DurationVisitor { numbers: false })
}

struct DurationVisitor {
    /// Whether a whole number means nanoseconds.
    numbers: bool,
}

impl Visitor<'_> for DurationVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 10s or 1h30m")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        parse_go(text).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Duration, E> {
        if !self.numbers {
            return Err(E::invalid_type(de::Unexpected::Unsigned(number), &self));
        }
        Ok(Duration::from_nanos(number))
    }
}

/// The same; a whole number means nanoseconds, as in old logging configurations.
pub(crate) mod or_nanoseconds {
    pub(crate) use super::serialize;
    use super::{Deserializer, Duration, DurationVisitor};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        deserializer.deserialize_any(DurationVisitor { numbers: true })
    }
}

/// The same; a negative duration means never, and is `None`.
pub(crate) mod or_never {
    use super::{Deserializer, Duration, Serializer, Visitor, de, fmt, format_go, parse_go};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_str(&format_go(*duration)),
            None => serializer.serialize_str("-1s"),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        deserializer.deserialize_str(NeverVisitor)
    }

    struct NeverVisitor;

    impl Visitor<'_> for NeverVisitor {
        type Value = Option<Duration>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a duration such as 1m, or a negative one for never")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<Duration>, E> {
            match text.strip_prefix('-') {
                Some(positive) => parse_go(positive).map(|_| None).map_err(E::custom),
                None => parse_go(text).map(Some).map_err(E::custom),
            }
        }
    }
}
