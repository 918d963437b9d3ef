//! Go serializes empty lists and maps as `null`.

use serde::{Deserialize, Deserializer};

/// Reads `null` as the empty value.
pub(crate) fn nullable<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
