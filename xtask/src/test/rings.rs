//! The rings of tests: each is one run of cargo-nextest. Failed tests run again, one at a time.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use rubelet_testbed::api_server;
use rubelet_testbed::cleanup::kept_logs;
use rubelet_testbed::runtime::VARIABLE;
use rubelet_testbed::scratch::in_memory;

use super::events::{Event, TestResult};
use super::nextest::Nextest;
use super::record::{TestName, TestOutcome, TestRecord, excerpt, logs_of_stage};
use super::seeds::Seeds;
use super::selection::{self, Part};
use super::skipped::SkippedFile;

/// Number of times that a failed test runs again.
const RETRIES: usize = 2;
/// With more failures than this none is retried: the cause is not chance.
const MAX_RETRIED_TESTS: usize = 40;
/// Lines of output of a failed test that are shown at once.
const LINES: usize = 12;

/// The environment of the tests of a ring.
#[derive(Debug, Clone, Copy)]
pub(super) struct Environment<'a> {
    /// The agent of tests that need one.
    pub(super) agent: &'a Path,
    /// The directory with the programs of an API server, if it is not the model.
    pub(super) api_server: Option<&'a Path>,
    /// The random lives of this run.
    pub(super) seeds: Seeds,
    /// The file that names the compiled test programs, for tests that run them elsewhere.
    pub(super) programs: &'a Path,
    /// The directory of the logs of agents and runtimes.
    pub(super) logs: &'a Path,
    /// The directory of temporary files, if those and the directories of instances are in memory.
    pub(super) memory: Option<&'a Path>,
    /// Removes what tests left on the machine, and names it.
    pub(super) sweep: fn() -> Result<Vec<String>>,
}

/// The results of a ring.
#[derive(Debug, Default)]
pub(super) struct RingResults {
    pub(super) tests: Vec<TestRecord>,
    /// Resources that tests left on the machine, and that were removed.
    pub(super) left_behind: Vec<String>,
}

/// Runs the part, then each failed test again by itself, up to twice.
///
/// # Errors
/// Not all tests could be run.
pub(super) fn run(
    nextest: &Nextest,
    stage: &str,
    part: Part<'_>,
    environment: Environment<'_>,
    results: &mut RingResults,
) -> Result<()> {
    let skipped = SkippedFile::new()?;
    let configure = |command: &mut Command| {
        command.env(VARIABLE, part.runtime.name());
        command.env("RUBELET_BIN", environment.agent);
        // Errors of tests describe what happened; backtraces of their creation add nothing.
        command.env("RUST_LIB_BACKTRACE", "0");
        command.env(rubelet_needs::SKIPPED, skipped.path());
        environment.seeds.set(command);
        command.env(kept_logs::VARIABLE, logs_of_stage(environment.logs, stage));
        command.env("RUBELET_TEST_PROGRAMS", environment.programs);
        if let Some(directory) = environment.memory {
            command.env(in_memory::VARIABLE, "1");
            command.env("TMPDIR", directory);
        }
        if let Some(dir) = environment.api_server {
            command.env(api_server::VARIABLE, dir);
        }
    };
    let first = results.tests.len();
    let mut add = |event| match event {
        Event::Program {
            binary,
            passed,
            failed,
            duration,
        } => println!(
            "{:>8.1} s  {binary}: {passed} passed, {failed} failed",
            duration.as_secs_f64()
        ),
        Event::Test {
            name,
            result,
            duration,
        } => {
            let outcome = match result {
                TestResult::Passed => TestOutcome::Passed,
                // Ignored tests run by name only.
                TestResult::Ignored => return,
                TestResult::Failed(output) => {
                    show_failure(&name, &output, duration);
                    TestOutcome::Failed(output)
                }
            };
            results.tests.push(TestRecord {
                name,
                stage: stage.to_owned(),
                outcome,
                duration,
            });
        }
    };
    let ran = nextest.run(
        &selection::expression(part),
        concurrency(part.ring),
        configure,
        &mut add,
    );
    let tests = &mut results.tests[first..];
    let failed: Vec<&mut TestRecord> = tests
        .iter_mut()
        .filter(|test| matches!(test.outcome, TestOutcome::Failed(_)))
        .collect();
    if failed.len() > MAX_RETRIED_TESTS {
        println!("{} tests failed: too many to run again", failed.len());
    } else {
        for test in failed {
            retry(nextest, test, configure)?;
        }
    }
    let reasons = skipped.read()?;
    for test in tests.iter_mut() {
        if test.outcome == TestOutcome::Passed
            && let Some(reason) = reasons.get(&test.name)
        {
            test.outcome = TestOutcome::Skipped(reason.clone());
        }
    }
    drop_logs_of_passed(environment.logs, tests);
    ran?;
    let left = (environment.sweep)()?;
    results
        .left_behind
        .extend(left.into_iter().map(|name| format!("{stage}: {name}")));
    Ok(())
}

/// Number of concurrent tests of a ring: two for each core, three where most of them wait for other
/// programs most of the time.
fn concurrency(ring: u8) -> usize {
    let for_each_core = if ring == 1 { 2 } else { 3 };
    for_each_core * std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs a failed test again until it passes, at most twice.
fn retry(nextest: &Nextest, test: &mut TestRecord, configure: impl Fn(&mut Command)) -> Result<()> {
    let TestOutcome::Failed(output) = &test.outcome else {
        return Ok(());
    };
    for _ in 0..RETRIES {
        let mut passed = false;
        let mut add = |event| {
            if let Event::Test { result, .. } = event {
                passed = result == TestResult::Passed;
            }
        };
        nextest.run(&selection::only(&test.name), 1, &configure, &mut add)?;
        println!(
            "again, by itself: {} {}",
            test.name,
            if passed { "passed" } else { "failed" }
        );
        if passed {
            test.outcome = TestOutcome::Flaky(output.clone());
            return Ok(());
        }
    }
    Ok(())
}

/// Removes the logs of passed tests: they are only of use for failures.
fn drop_logs_of_passed(base: &Path, tests: &[TestRecord]) {
    for test in tests {
        let failed = matches!(test.outcome, TestOutcome::Failed(_) | TestOutcome::Flaky(_));
        if !failed {
            // Most tests have no logs.
            drop(fs::remove_dir_all(test.logs(base)));
        }
    }
}

fn show_failure(name: &TestName, output: &str, duration: Duration) {
    println!("test {name} ... failed ({:.1} s)", duration.as_secs_f64());
    for line in excerpt(output, LINES) {
        println!("    {line}");
    }
}

/// Fails if there are test programs without a test.
pub(super) fn refuse_empty(empty: &[String]) -> Result<()> {
    if empty.is_empty() {
        return Ok(());
    }
    bail!(
        "test programs without a test: {}; add one, or set `test = false` in the manifest",
        empty.join(", ")
    )
}

#[cfg(test)]
mod tests;
