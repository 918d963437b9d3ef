//! Durations and names, as stories write them.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use rubelet_sim::EntryKind;

/// `200ms`, `5s`, `10m`, `1h`, or several of them in a row.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        total += match &rest[..unit] {
            "ms" => Duration::from_millis(count),
            "s" => Duration::from_secs(count),
            "m" => Duration::from_secs(60 * count),
            "h" => Duration::from_secs(3600 * count),
            _ => return None,
        };
        rest = &rest[unit..];
    }
    (!text.is_empty()).then_some(total)
}

/// Minutes, seconds and tenths since the story began.
pub(super) fn clock(at: Duration) -> String {
    let (seconds, tenths) = (at.as_secs(), at.subsec_millis() / 100);
    format!("{:02}:{:02}.{tenths}", seconds / 60, seconds % 60)
}

/// A length of time in seconds.
pub(super) fn length(time: Duration) -> String {
    match time.subsec_millis() / 100 {
        0 => format!("{} s", time.as_secs()),
        tenths => format!("{}.{tenths} s", time.as_secs()),
    }
}

/// Short names for identifiers: `web#1` for the instance of container `web` with restart count 1,
/// a sandbox's attempt number for the sandbox.
#[derive(Default)]
pub(super) struct Names {
    by_id: BTreeMap<String, String>,
    uids: Vec<String>,
}

impl Names {
    /// Learns the names of new objects.
    pub(super) fn learn(&mut self, what: &EntryKind) {
        let (id, name) = match what {
            EntryKind::SandboxReady { id, attempt, .. } => (id, attempt.to_string()),
            EntryKind::ContainerCreated(of) => (&of.id, format!("{}#{}", of.name, of.attempt)),
            _ => return,
        };
        self.by_id.insert(id.clone(), name);
    }

    /// A generated pod UID is written as `UID`; one from the manifest is kept.
    pub(super) fn learn_uid(&mut self, uid: &str) {
        if uid.len() >= 32 {
            self.uids.push(uid.to_owned());
        }
    }

    pub(super) fn of<'a>(&'a self, id: &'a str) -> &'a str {
        self.by_id.get(id).map_or(id, String::as_str)
    }

    /// The text with short names in place of IDs, and times since `start` in place of timestamps.
    pub(super) fn plain(&self, text: &str, start: Timestamp) -> String {
        let mut text = text.to_owned();
        for (id, name) in &self.by_id {
            text = text.replace(id, name);
        }
        for uid in &self.uids {
            text = text.replace(uid, "UID");
        }
        let words = text.split(' ').map(|word| {
            let bare = word.trim_end_matches([',', ';', '.']);
            let at = bare.parse::<Timestamp>().ok();
            at.map_or_else(
                || word.to_owned(),
                |at| {
                    let since = Duration::try_from(at.duration_since(start)).unwrap_or_default();
                    format!("{}{}", clock(since), &word[bare.len()..])
                },
            )
        });
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_formatted() {
        for (text, expected) in [
            ("200ms", Some(Duration::from_millis(200))),
            ("1m30s", Some(Duration::from_secs(90))),
            ("2h", Some(Duration::from_secs(7200))),
            ("5", None),
            ("s", None),
            ("", None),
            ("5 s", None),
        ] {
            assert_eq!(duration(text), expected, "{text:?}");
        }
        assert_eq!(clock(Duration::from_millis(61_290)), "01:01.2");
        assert_eq!(clock(Duration::from_secs(7200)), "120:00.0");
    }
}
