//! Snapshots of messages.

use std::fmt::Write as _;
use std::path::Path;

/// The environment variable that updates the files.
const UPDATE: &str = "RUBELET_UPDATE_MESSAGES";

/// Messages, each with a heading that describes the problem.
#[derive(Default)]
pub(crate) struct Snapshot {
    text: String,
    /// Texts that differ between runs, and their placeholders.
    replaced: Vec<(String, &'static str)>,
}

impl Snapshot {
    /// Replaces `text`, which differs between runs, by `word`.
    pub(crate) fn replace(&mut self, text: impl Into<String>, word: &'static str) {
        self.replaced.push((text.into(), word));
        // Longer paths are replaced first.
        self.replaced
            .sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
    }

    /// Adds a message.
    pub(crate) fn add(&mut self, problem: &str, message: &str) {
        let replaced = self.replaced.iter();
        let message = replaced.fold(message.to_owned(), |message, (text, word)| {
            message.replace(text, word)
        });
        let _ = writeln!(self.text, "## {problem}\n{}\n", plain(message.trim_end()));
    }

    /// Compares with `messages/NAME.txt`.
    pub(crate) fn compare(self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/messages/{name}.txt"));
        if std::env::var_os(UPDATE).is_some() {
            return std::fs::write(&path, self.text).unwrap();
        }
        let before = std::fs::read_to_string(&path).unwrap();
        let differing: Vec<String> = differences(&before, &self.text);
        assert!(
            differing.is_empty(),
            "messages differ from {}; `{UPDATE}=1` writes them:\n{}",
            path.display(),
            differing.join("\n")
        );
    }
}

fn differences(before: &str, now: &str) -> Vec<String> {
    let sections = |text: &str| -> Vec<String> {
        let sections = text.split("## ").skip(1);
        sections.map(|part| part.trim_end().to_owned()).collect()
    };
    let (before, now) = (sections(before), sections(now));
    let gone = before.iter().filter(|part| !now.contains(part));
    let new = now.iter().filter(|part| !before.contains(part));
    let gone = gone.map(|part| format!("- {part}"));
    gone.chain(new.map(|part| format!("+ {part}"))).collect()
}

/// The text with placeholders for what differs between runs: ports of 127.0.0.1, identifiers,
/// addresses.
fn plain(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || ".:-".contains(c);
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        plain.push_str(&plain_word(&rest[..end]));
        rest = &rest[end..];
    }
    plain
}

fn plain_word(word: &str) -> String {
    let (name, port) = word.split_once(':').unwrap_or((word, ""));
    let number = port.trim_end_matches(':');
    if !number.is_empty() && number.parse::<u16>().is_ok() && is_address(name) {
        let end = &port[number.len()..];
        return format!("{}:PORT{end}", plain_address(name));
    }
    if is_address(word.trim_end_matches([':', '.'])) {
        return plain_address(word);
    }
    let end = word.trim_end_matches([':', '.']);
    let is_id = end.len() >= 12 && end.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    match is_id {
        true => word.replace(end, "ID"),
        false => word.to_owned(),
    }
}

fn is_address(text: &str) -> bool {
    text.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Addresses of pods differ; that of the machine itself does not.
fn plain_address(text: &str) -> String {
    let address = text.trim_end_matches([':', '.']);
    match address.starts_with("10.") || address.starts_with("172.") || address.starts_with("192.") {
        true => text.replace(address, "ADDRESS"),
        false => text.to_owned(),
    }
}

#[test]
fn values_that_differ_between_runs_are_masked() {
    for (text, expected) in [
        (
            "127.0.0.1:40123: connection refused",
            "127.0.0.1:PORT: connection refused",
        ),
        ("\"http://10.3.0.7:80/x\"", "\"http://ADDRESS:PORT/x\""),
        ("container 0a1b2c3d4e5f60718293: gone", "container ID: gone"),
        ("pod 6a2f41a3-c54c-4b1e-8f4e-1f2d3c4b5a69", "pod ID"),
        (
            "line 3, column 5: spec.containers",
            "line 3, column 5: spec.containers",
        ),
    ] {
        assert_eq!(plain(text), expected);
    }
}

#[test]
fn a_changed_message_is_shown_as_a_diff() {
    let (before, now) = ("## a\nx\n\n## b\ny\n\n", "## a\nx\n\n## b\nz\n\n");
    assert_eq!(differences(before, now), ["- b\ny", "+ b\nz"]);
    assert_eq!(differences(now, now), [""; 0]);
}
