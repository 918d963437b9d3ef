//! Which files of a log are removed, which are compressed, and the name of the next one. No effects.

use std::collections::BTreeMap;

use jiff::{Span, Timestamp, civil::DateTime, tz::TimeZone};

use crate::layout::{Rotated, rotated};

/// The suffix of rotated files. The kubelet writes local time; UTC has no hour that comes twice.
const SUFFIX: &str = "%Y%m%d-%H%M%S";

/// What is to be done with the files of a log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tidy {
    /// Names of files to remove.
    pub(super) remove: Vec<String>,
    /// Names of files to compress, oldest first.
    pub(super) compress: Vec<String>,
}

/// The plan for the files of `log`, of which so many rotated ones are kept. `names` are those in its
/// directory; those that are no rotated files of the log are ignored.
pub(super) fn tidy(log: &str, names: &[String], kept: usize) -> Tidy {
    let mut plan = Tidy::default();
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

/// The suffix of the file that is rotated now. It is newer than those of all rotated files, also
/// after several rotations within a second and after the clock was set back.
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
