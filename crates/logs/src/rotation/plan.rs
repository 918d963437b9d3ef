//! The plan of a rotation: files to remove, files to compress, and the name of the next one. Pure.

use std::collections::BTreeMap;

use jiff::{Span, Timestamp, civil::DateTime, tz::TimeZone};

use crate::layout::{Rotated, rotated};

/// The suffix of rotated files. The kubelet writes local time; UTC has no repeated hour.
const SUFFIX: &str = "%Y%m%d-%H%M%S";

/// The actions on the files of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RotationPlan {
    /// Names of files to remove.
    pub(super) remove: Vec<String>,
    /// Names of files to compress, oldest first.
    pub(super) compress: Vec<String>,
}

/// The plan for the files of `log`, of which `kept` rotated ones are kept. `names` are the files in
/// its directory; files that do not belong to the log are ignored.
pub(super) fn plan_rotation(log: &str, names: &[String], kept: usize) -> RotationPlan {
    let mut plan = RotationPlan::default();
    // By age, oldest first: the plain file and the compressed one.
    let mut files: BTreeMap<&str, [Option<&String>; 2]> = BTreeMap::new();
    for name in names {
        match rotated(log, name) {
            Some(Rotated::Plain(at)) => files.entry(at).or_default()[0] = Some(name),
            Some(Rotated::Compressed(at)) => files.entry(at).or_default()[1] = Some(name),
            // Compression was interrupted.
            Some(Rotated::Partial(_)) => plan.remove.push(name.clone()),
            None => {}
        }
    }
    let excess = files.len().saturating_sub(kept);
    let newest = files.len().saturating_sub(1);
    for (index, [plain, compressed]) in files.into_values().enumerate() {
        let (plain, compressed) = (plain.cloned(), compressed.cloned());
        if index < excess {
            plan.remove.extend(plain.into_iter().chain(compressed));
        } else if compressed.is_some() {
            // The compressed file got its name when it was complete.
            plan.remove.extend(plain);
        } else if index < newest {
            plan.compress.extend(plain);
        }
    }
    plan
}

/// The suffix of the next rotated file. It is newer than those of all rotated files, even after
/// several rotations within a second or after the clock was set back.
pub(super) fn next_suffix(log: &str, names: &[String], now: Timestamp) -> String {
    let text = |at: DateTime| at.strftime(SUFFIX).to_string();
    let now = text(now.to_zoned(TimeZone::UTC).datetime());
    let suffixes = names
        .iter()
        .filter_map(|name| rotated(log, name).map(Rotated::suffix));
    match suffixes.max() {
        Some(newest) if newest >= &*now => DateTime::strptime(SUFFIX, newest)
            .and_then(|newest| newest.checked_add(Span::new().seconds(1)))
            .map_or(now, text),
        _ => now,
    }
}

#[cfg(test)]
mod tests;
