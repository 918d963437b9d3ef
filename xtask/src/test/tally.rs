//! How many tests ended how, and why some did not run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};

/// How many tests ended how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// As they should.
    pub(super) passed: u64,
    /// Not as they should.
    pub(super) failed: u64,
    /// Left out: the machine or the runtime has not what they need.
    pub(super) skipped: u64,
    /// The names of those, by reason.
    reasons: BTreeMap<String, Vec<String>>,
    /// Programs without a test.
    empty: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
            ..
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Tally {
    /// Counts what a test program says at its end; any other line is passed over. `program` tells its
    /// name, and is asked once for each end.
    pub(super) fn add(&mut self, line: &str, program: impl FnOnce() -> String) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_, counts)) = result.split_once(". ") else {
            return;
        };
        let name = program();
        let mut known = 0;
        for part in counts.split("; ") {
            let Some((number, what)) = part.split_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                "filtered out" => {}
                _ => continue,
            }
            known += number;
        }
        if known == 0 {
            self.empty.push(name);
        }
    }

    /// Programs that ended without having a test, filtered out or not.
    pub(super) fn empty(&self) -> &[String] {
        &self.empty
    }

    /// Counts tests as skipped that ended early and so count as passed until now: a line each, as
    /// `rubelet-needs` writes them.
    pub(super) fn take_out(&mut self, lines: &str) {
        for line in lines.lines() {
            let (name, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
            let names = self.reasons.entry(reason.to_owned()).or_default();
            // A test may lack several things, or one thing several times.
            if names.iter().any(|one| one == name) {
                continue;
            }
            names.push(name.to_owned());
            self.skipped += 1;
            self.passed = self.passed.saturating_sub(1);
        }
    }

    /// Which tests were skipped and why, a line for each reason.
    pub(super) fn reasons(&self) -> impl Iterator<Item = String> {
        self.reasons
            .iter()
            .map(|(reason, names)| format!("skipped, {reason}: {}", names.join(", ")))
    }
}

/// Where tests write that they are skipped.
pub(super) struct Skipped(tempfile::NamedTempFile);

impl Skipped {
    pub(super) fn new() -> Result<Self> {
        let file = tempfile::Builder::new()
            .prefix("rubelet-t-skipped")
            .tempfile();
        Ok(Self(file.context("cannot make a temporary file")?))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn read(&self) -> Result<String> {
        std::fs::read_to_string(self.path()).context("cannot read which tests were skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_test_programs_are_added_up() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test a_test ... ok",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s",
        ] {
            tally.add(line, String::new);
        }
        assert_eq!(tally.to_string(), "4 passed, 2 failed, 1 skipped");
        assert_eq!(tally.empty(), [""; 0]);
    }

    #[test]
    fn a_program_without_a_test_is_told_by_name() {
        let mut tally = Tally::default();
        for (name, filtered) in [("tests/none.rs", 0), ("tests/others.rs", 4)] {
            let line = format!(
                "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; {filtered} filtered out; finished in 0.00s"
            );
            tally.add(&line, || name.to_owned());
        }
        assert_eq!(tally.empty(), ["tests/none.rs"]);
    }

    #[test]
    fn a_test_that_ended_early_counts_as_skipped_once() {
        let mut tally = Tally {
            passed: 5,
            ..Tally::default()
        };
        tally.take_out("a\tneeds root\na\tneeds root\nb\tneeds root\nc\tneeds nft\n");
        assert_eq!(tally.to_string(), "2 passed, 0 failed, 3 skipped");
        let reasons: Vec<_> = tally.reasons().collect();
        assert_eq!(
            reasons,
            ["skipped, needs nft: c", "skipped, needs root: a, b"]
        );
    }
}
