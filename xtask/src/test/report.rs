//! The end of a run: what failed, what is flaky, what was skipped, what was slow.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::nextest::Nextest;
use super::record::{TestOutcome, TestRecord, excerpt};

/// Slowest tests that are listed.
const SLOWEST: usize = 20;
/// Lines of output of each failed test.
const LINES: usize = 20;

/// Counts of test results. A flaky test has passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) skipped: u64,
    pub(super) flaky: u64,
}

impl Counts {
    pub(super) fn of(tests: &[TestRecord]) -> Self {
        let mut counts = Self::default();
        for test in tests {
            match test.outcome {
                TestOutcome::Passed => counts.passed += 1,
                TestOutcome::Failed(_) => counts.failed += 1,
                TestOutcome::Skipped(_) => counts.skipped += 1,
                TestOutcome::Flaky(_) => {
                    counts.passed += 1;
                    counts.flaky += 1;
                }
            }
        }
        counts
    }
}

impl fmt::Display for Counts {
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

/// All lines about tests but the counts.
pub(super) fn lines(tests: &[TestRecord], logs: &Path) -> Vec<String> {
    let mut lines = failed(tests, logs);
    lines.extend(flaky(tests, logs));
    lines.extend(skipped(tests));
    lines.extend(slowest(tests));
    lines
}

fn failed(tests: &[TestRecord], logs: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for test in tests {
        let TestOutcome::Failed(output) = &test.outcome else {
            continue;
        };
        lines.push(format!("test {} ... FAILED in {}", test.name, test.stage));
        lines.extend(alone(test).map(|command| format!("    alone: {command}")));
        lines.extend(kept(test, logs));
        lines.extend(
            excerpt(output, LINES)
                .into_iter()
                .map(|line| format!("    {line}")),
        );
    }
    lines
}

fn flaky(tests: &[TestRecord], logs: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for test in tests {
        let TestOutcome::Flaky(output) = &test.outcome else {
            continue;
        };
        lines.push(format!(
            "flaky: {} in {}, passed when run again by itself",
            test.name, test.stage
        ));
        lines.extend(kept(test, logs));
        lines.extend(
            excerpt(output, LINES)
                .into_iter()
                .map(|line| format!("    {line}")),
        );
    }
    lines
}

/// The path of the logs of its agents and runtimes.
fn kept(test: &TestRecord, logs: &Path) -> Option<String> {
    let dir = test.logs(logs);
    dir.is_dir().then(|| format!("    logs: {}", dir.display()))
}

fn skipped(tests: &[TestRecord]) -> Vec<String> {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for test in tests {
        if let TestOutcome::Skipped(reason) = &test.outcome {
            reasons
                .entry(reason)
                .or_default()
                .push(test.name.to_string());
        }
    }
    reasons
        .into_iter()
        .map(|(reason, names)| format!("skipped, {reason}: {}", names.join(", ")))
        .collect()
}

fn slowest(tests: &[TestRecord]) -> Vec<String> {
    let mut tests: Vec<&TestRecord> = tests.iter().collect();
    tests.sort_by_key(|test| std::cmp::Reverse(test.duration));
    let each = tests.into_iter().take(SLOWEST).map(|test| {
        let seconds = test.duration.as_secs_f64();
        format!("{seconds:>8.1} s  {} in {}", test.name, test.stage)
    });
    ["=== slowest".to_owned()].into_iter().chain(each).collect()
}

/// The command that runs a test by itself. Stages of tests are called `ring N` or
/// `ring N on RUNTIME`; examples in documentation are run by cargo.
fn alone(test: &TestRecord) -> Option<String> {
    let ring = test.stage.strip_prefix("ring ")?;
    let (ring, runtime) = match ring.split_once(" on ") {
        Some((ring, runtime)) => (ring, Some(runtime)),
        None => (ring, None),
    };
    Some(Nextest::alone(&test.name, ring.parse().ok()?, runtime))
}

/// Writes the flaky tests of this run, as a list of objects.
///
/// # Errors
/// The file can't be written.
pub(super) fn write_flaky(path: &Path, tests: &[TestRecord], commit: &str) -> Result<()> {
    let list = flaky_list(tests, commit);
    let text = serde_json::to_string_pretty(&list)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

fn flaky_list(tests: &[TestRecord], commit: &str) -> Value {
    let each = tests.iter().filter_map(|test| match &test.outcome {
        TestOutcome::Flaky(message) => Some(json!({
            "name": test.name.to_string(),
            "stage": test.stage,
            "message": message,
            "commit": commit,
        })),
        _ => None,
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::record::TestName;
    use super::*;

    fn test(name: &str, stage: &str, outcome: TestOutcome, seconds: u64) -> TestRecord {
        TestRecord {
            name: TestName {
                binary: "a::b".into(),
                test: name.into(),
            },
            stage: stage.into(),
            outcome,
            duration: Duration::from_secs(seconds),
        }
    }

    fn all() -> Vec<TestRecord> {
        vec![
            test("good", "ring 1", TestOutcome::Passed, 1),
            test(
                "late",
                "ring 2",
                TestOutcome::Flaky("panicked at x".into()),
                3,
            ),
            test(
                "bad",
                "ring 3 on embedded",
                TestOutcome::Failed("no".into()),
                2,
            ),
            test(
                "other",
                "ring 1",
                TestOutcome::Skipped("needs nft".into()),
                0,
            ),
        ]
    }

    #[test]
    fn a_flaky_test_counts_as_passed() {
        assert_eq!(
            Counts::of(&all()).to_string(),
            "2 passed, 1 failed, 1 skipped"
        );
        assert_eq!(Counts::of(&all()).flaky, 1);
    }

    #[test]
    fn each_failure_comes_with_the_command_that_runs_it_alone() {
        assert_eq!(
            lines(&all(), Path::new("/nowhere")),
            [
                "test a::b bad ... FAILED in ring 3 on embedded",
                "    alone: cargo xtask test --ring 3 --runtime embedded 'a::b bad'",
                "    no",
                "flaky: a::b late in ring 2, passed when run again by itself",
                "    panicked at x",
                "skipped, needs nft: a::b other",
                "=== slowest",
                "     3.0 s  a::b late in ring 2",
                "     2.0 s  a::b bad in ring 3 on embedded",
                "     1.0 s  a::b good in ring 1",
                "     0.0 s  a::b other in ring 1",
            ]
        );
    }

    #[test]
    fn flaky_tests_are_written_with_their_output() {
        assert_eq!(
            flaky_list(&all(), "c0ffee"),
            json!([{ "name": "a::b late", "stage": "ring 2", "message": "panicked at x",
                "commit": "c0ffee" }])
        );
    }
}
