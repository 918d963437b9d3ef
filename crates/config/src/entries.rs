//! Mappings of strings. An entry that is null is omitted: in a drop-in it removes the entry of an
//! earlier file.

use serde::Deserialize;
use serde::de::Deserializer;
use std::collections::BTreeMap;

/// Reads a mapping without its null entries.
pub(crate) fn deserialize<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    let entries = BTreeMap::<String, Option<V>>::deserialize(deserializer)?;
    Ok(entries
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect())
}
