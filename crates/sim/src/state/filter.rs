//! Filters of lists.

use std::collections::BTreeMap;

/// Whether `labels` contains all of `wanted`.
pub(super) fn selects(
    wanted: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> bool {
    wanted
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

/// Whether `wanted` is `have`, or not given.
pub(super) fn is_or_empty(wanted: &str, have: &str) -> bool {
    wanted.is_empty() || wanted == have
}
