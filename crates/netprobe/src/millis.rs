//! Durations in JSON: milliseconds with a fraction, as every tool of this kind prints them.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// Conversions of durations.
pub(crate) struct Millis;

impl Millis {
    /// The nearest duration; that of a negative or an impossible number is zero.
    pub(crate) fn from_nanos(nanos: f64) -> Duration {
        Duration::try_from_secs_f64(nanos / 1e9).unwrap_or_default()
    }

    fn of(duration: Duration) -> f64 {
        duration.as_nanos() as f64 / 1e6
    }
}

pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(Millis::of(*value))
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(from)?;
    Duration::try_from_secs_f64(millis / 1e3)
        .map_err(|_| D::Error::custom("not a number of milliseconds"))
}

/// The same for durations that may be absent.
pub(crate) mod optional {
    use super::{Deserializer, Duration, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(from).map(Some)
    }
}
