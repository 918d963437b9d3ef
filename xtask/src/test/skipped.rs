//! The file in which tests record that they are skipped, through `rubelet-needs`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::record::TestName;

/// The file; removed when this value is dropped.
pub(super) struct SkippedFile(tempfile::NamedTempFile);

impl SkippedFile {
    pub(super) fn new() -> Result<Self> {
        let file = tempfile::Builder::new()
            .prefix("rubelet-t-skipped")
            .tempfile();
        Ok(Self(file.context("cannot make a temporary file")?))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The reasons of skipped tests.
    pub(super) fn read(&self) -> Result<BTreeMap<TestName, String>> {
        let text = std::fs::read_to_string(self.path());
        Ok(parse(
            &text.context("cannot read which tests were skipped")?,
        ))
    }
}

/// A line each: the name, a tab, the reason. A test may lack several requirements; the first counts.
fn parse(text: &str) -> BTreeMap<TestName, String> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let (name, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
        if let Some(name) = TestName::parse(name) {
            found.entry(name).or_insert_with(|| reason.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_of_a_test_counts() {
        let found = parse("a b\tneeds root\na b\tneeds nft\nc d\tneeds nft\nnonsense\n");
        let reason = |binary: &str, test: &str| {
            let (binary, test) = (binary.to_owned(), test.to_owned());
            found.get(&TestName { binary, test }).map(String::as_str)
        };
        assert_eq!(reason("a", "b"), Some("needs root"));
        assert_eq!(reason("c", "d"), Some("needs nft"));
        assert_eq!(found.len(), 2);
    }
}
