//! The rings of tests: each is one call of `cargo test`, whose results are counted.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rubelet_testbed::command::line;
use rubelet_testbed::runtime::{Kind, VARIABLE};
use rubelet_testbed::sweep;

use crate::cargo;

/// All rings, in the order in which they run.
pub(super) const ALL: [u8; 4] = [1, 2, 3, 4];
/// Where the tests that start a runtime and the agent are.
const RUNTIME_TESTS: &str = "crates/testbed/tests";
/// How the names of those that put it under stress begin.
const STRESS_PREFIX: &str = "ring4";
/// Programs that say something about containerd only: the test bed itself, its lines, and what an
/// agent does while a runtime in another process is away.
const CONTAINERD_ONLY: [&str; 4] = ["containerd", "health", "lines", "runtime_restart"];
/// Programs that say something about the embedded runtime only. `cri` runs on containerd too, by
/// hand: what fails there is containerd's.
const EMBEDDED_ONLY: [&str; 3] = ["cgroup_v2", "cri", "faults"];
/// How many of those run at the same time: each keeps both cores of a small machine busy.
const RUNTIME_THREADS: &str = "2";

/// How many tests ended how.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// As they should.
    pub(super) passed: u64,
    /// Not as they should.
    pub(super) failed: u64,
    /// Left out, because they say so themselves.
    pub(super) skipped: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Tally {
    /// Counts what a test program says at its end; any other line is passed over.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let Some((_, counts)) = result.split_once(". ") else {
            return;
        };
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
                _ => {}
            }
        }
    }
}

/// Whether the tests of this ring start a runtime and the agent.
pub(super) fn needs_agent(ring: u8) -> bool {
    ring >= 3
}

/// What of a ring is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    /// The ring.
    pub(super) ring: u8,
    /// The runtime of tests that need one.
    pub(super) runtime: Kind,
    /// The agent of tests that need one.
    pub(super) agent: Option<&'a Path>,
    /// Only tests whose name contains this.
    pub(super) filter: Option<&'a str>,
}

/// Runs it, showing what the tests print, and adds their results to `tally`.
pub(super) fn run(root: &Path, part: Part<'_>, tally: &mut Tally) -> Result<()> {
    let Part {
        ring,
        runtime,
        agent,
        filter,
    } = part;
    let mut command = cargo::command(root, &["test", "--no-fail-fast"]);
    match ring {
        1 => command.args(["--workspace", "--lib", "--bins"]),
        2 => {
            // Tests that run programs of their crates take them from here.
            cargo::run(&mut cargo::command(
                root,
                &["build", "--workspace", "--examples"],
            ))?;
            command.args(["--workspace", "--exclude", "rubelet-testbed", "--test", "*"])
        }
        _ => {
            let names = runtime_tests(root, ring, runtime)?;
            if names.is_empty() {
                println!("there is no test in ring {ring}");
                return Ok(());
            }
            command.args(["--package", "rubelet-testbed"]);
            command.args(names.iter().flat_map(|name| ["--test", name]))
        }
    };
    command.args(filter);
    if let Some(agent) = agent {
        command.env("RUBELET_BIN", agent);
    }
    command.env(VARIABLE, runtime.name());
    if needs_agent(ring) {
        command.args(["--", "--test-threads", RUNTIME_THREADS]);
    }
    // Errors of tests say what happened; where an error value was made says nothing more.
    command.env("RUST_LIB_BACKTRACE", "0");
    let good = show(&mut command, tally)?;
    let left = sweep()?;
    if !good {
        bail!("`{}` failed", line(&command));
    }
    if !left.is_empty() {
        bail!("tests ended without cleaning up: {}", left.join(", "));
    }
    Ok(())
}

/// Whether a test program says something about this runtime.
fn is_about(runtime: Kind, name: &str) -> bool {
    let others: &[&str] = match runtime {
        Kind::Containerd => &EMBEDDED_ONLY,
        Kind::Embedded => &CONTAINERD_ONLY,
    };
    !others.contains(&name)
}

/// The names of the test programs of a ring that needs the agent.
fn runtime_tests(root: &Path, ring: u8, runtime: Kind) -> Result<Vec<String>> {
    let dir = root.join(RUNTIME_TESTS);
    let entries =
        std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_program = name.ends_with(".rs") || entry.path().join("main.rs").is_file();
        if is_program && ring_of(&name) == ring {
            names.push(name.trim_end_matches(".rs").to_owned());
        }
    }
    names.retain(|name| is_about(runtime, name));
    names.sort();
    Ok(names)
}

fn ring_of(name: &str) -> u8 {
    if name.starts_with(STRESS_PREFIX) {
        4
    } else {
        3
    }
}

/// Runs the command, passing on what it prints; whether it ended well.
fn show(command: &mut Command, tally: &mut Tally) -> Result<bool> {
    let text = line(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{text}`"))?;
    let stdout = child
        .stdout
        .take()
        .context("the output of the tests is not a pipe")?;
    for line in BufReader::new(stdout).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        tally.add(&line);
    }
    Ok(child.wait()?.success())
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
            tally.add(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 4,
                failed: 2,
                skipped: 1
            }
        );
        assert_eq!(tally.to_string(), "4 passed, 2 failed, 1 skipped");
    }

    #[test]
    fn what_is_about_one_runtime_only_is_not_run_on_the_other() {
        for (name, on_containerd, on_embedded) in [
            ("lifecycle", true, true),
            ("cri", false, true),
            ("lines", true, false),
            ("faults", false, true),
        ] {
            assert_eq!(is_about(Kind::Containerd, name), on_containerd, "{name}");
            assert_eq!(is_about(Kind::Embedded, name), on_embedded, "{name}");
        }
    }

    #[test]
    fn stress_tests_are_a_ring_of_their_own() {
        assert_eq!(ring_of("ring4_storms.rs"), 4);
        assert_eq!(ring_of("containerd.rs"), 3);
    }
}
