//! The result of one test.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rubelet_testbed::cleanup::kept_logs;

/// A test, as cargo-nextest names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TestName {
    /// The test program: `PACKAGE`, `PACKAGE::PROGRAM` or `PACKAGE::bin/PROGRAM`.
    pub(super) binary: String,
    /// The test's path in it.
    pub(super) test: String,
}

impl TestName {
    /// Parses the output of `Display`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (binary, test) = text.split_once(' ')?;
        Some(Self {
            binary: binary.to_owned(),
            test: test.to_owned(),
        })
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.binary, self.test)
    }
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestOutcome {
    Passed,
    /// It failed each time; its output.
    Failed(String),
    /// It failed, and passed when it ran again by itself; the output of the failure.
    Flaky(String),
    /// It was not run, or ended early; the reason.
    Skipped(String),
}

/// A test with its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TestRecord {
    pub(super) name: TestName,
    /// The stage in which it ran.
    pub(super) stage: String,
    pub(super) outcome: TestOutcome,
    pub(super) duration: Duration,
}

impl TestRecord {
    /// The directory of the logs of its agents and runtimes.
    pub(super) fn logs(&self, base: &Path) -> PathBuf {
        let TestName { binary, test } = &self.name;
        kept_logs::directory(&logs_of_stage(base, &self.stage), binary, test)
    }
}

/// The directory of the logs of a stage: a test that runs in several must not lose those of one by passing in another.
pub(super) fn logs_of_stage(base: &Path, stage: &str) -> PathBuf {
    base.join(stage.replace(' ', "-"))
}

/// The most useful lines of a failed test's output: from its panic on, or else the last ones.
pub(super) fn excerpt(output: &str, lines: usize) -> Vec<&str> {
    let all: Vec<&str> = output
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let start = all
        .iter()
        .position(|line| line.contains("panicked at"))
        .unwrap_or_else(|| all.len().saturating_sub(lines));
    let rest = all.into_iter().skip(start);
    // The first line names the location of the panic.
    let told = rest.take_while(|line| !line.ends_with("stack backtrace:"));
    // The command that replays it is printed after the backtrace.
    let seed = output.lines().map(str::trim);
    let seed = seed.filter(|line| line.starts_with("RUBELET_SEED="));
    seed.chain(told.take(lines)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_from_its_display_form() {
        let name = TestName {
            binary: "rubelet-shim::shim".into(),
            test: "exits::one".into(),
        };
        assert_eq!(TestName::parse(&name.to_string()), Some(name));
        assert_eq!(TestName::parse("one"), None);
    }

    #[test]
    fn an_excerpt_begins_with_the_panic() {
        let output = "a\nb\nthread 'x' panicked at src/lib.rs:1:1:\nno\n\nway\nc\n";
        assert_eq!(
            excerpt(output, 3),
            ["thread 'x' panicked at src/lib.rs:1:1:", "no", "way"]
        );
        let output = "thread 'x' panicked at a:\nno\nstack backtrace:\n 0: y\n";
        assert_eq!(excerpt(output, 9), ["thread 'x' panicked at a:", "no"]);
        let output = "thread 'x' panicked at a:\nno\nstack backtrace:\n 0: y\n  RUBELET_SEED=7\n";
        let shown = ["RUBELET_SEED=7", "thread 'x' panicked at a:", "no"];
        assert_eq!(excerpt(output, 9), shown);
        assert_eq!(excerpt("a\nb\nc\n", 2), ["b", "c"]);
        assert_eq!(excerpt("", 2), [""; 0]);
    }
}
