//! Compiles, lists and runs tests with cargo-nextest: a process for each test, all programs in one
//! pool over all cores.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rubelet_testbed::command::line;
use serde_json::{Map, Value};

use super::events::{Event, EventParser, TestResult};
use super::record::TestName;
use super::selection::RUNTIME_TESTS;
use super::tools::Tool;

const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.143",
    version_arguments: &["--version"],
    from_path: true,
};
/// Enables the events on standard output.
const EVENTS: (&str, &str) = ("NEXTEST_EXPERIMENTAL_LIBTEST_JSON", "1");

/// cargo-nextest in a workspace.
#[derive(Debug, Clone)]
pub(super) struct Nextest {
    program: PathBuf,
    root: PathBuf,
}

/// The compiled test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Programs {
    /// Names of programs that start a runtime and the agent.
    pub(super) of_runtimes: Vec<String>,
    /// IDs of programs without a test.
    pub(super) empty: Vec<String>,
    /// The directory of compiled programs: `target/debug`.
    pub(super) directory: PathBuf,
    /// The paths of all test programs, by their IDs.
    pub(super) paths: Map<String, Value>,
}

impl Nextest {
    /// Installs it if it is missing.
    ///
    /// # Errors
    /// It can't be built.
    pub(super) fn ensure(root: &Path) -> Result<Self> {
        Ok(Self {
            program: NEXTEST.ensure(root)?,
            root: root.to_path_buf(),
        })
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["nextest", subcommand, "--workspace", "--color", "never"])
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    /// Compiles all tests, and with them all programs and examples, in one graph.
    ///
    /// # Errors
    /// Something does not compile, or its tests cannot be listed.
    pub(super) fn build(&self) -> Result<Programs> {
        let mut command = self.command("list");
        command.args(["--message-format", "json"]);
        let text = line(&command);
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("cannot start `{text}`"))?;
        if !output.status.success() {
            bail!("`{text}` failed ({})", output.status);
        }
        let list = serde_json::from_slice(&output.stdout);
        programs(&list.context("the list of tests is not JSON")?)
    }

    /// Runs the selected tests, `threads` at a time, and passes on each result; `configure` sets the
    /// environment.
    ///
    /// # Errors
    /// It did not run them all.
    pub(super) fn run(
        &self,
        expression: &str,
        threads: usize,
        configure: impl FnOnce(&mut Command),
        mut on_event: impl FnMut(Event),
    ) -> Result<()> {
        let mut command = self.command("run");
        command
            .args(["--no-fail-fast", "--no-tests", "pass"])
            .args(["--message-format", "libtest-json-plus"])
            .args(["--status-level", "none", "--final-status-level", "none"])
            .args(["--failure-output", "never", "--show-progress", "none"])
            .args(["--cargo-quiet", "--no-input-handler"])
            .args(["-E", expression])
            .args(["--test-threads", &threads.to_string()])
            .env(EVENTS.0, EVENTS.1)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        configure(&mut command);
        let text = line(&command);
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start `{text}`"))?;
        let pipes = child.stdout.take().zip(child.stderr.take());
        let (stdout, mut stderr) = pipes.context("the output of the tests is not a pipe")?;
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            // An unreadable pipe ends the output.
            drop(stderr.read_to_end(&mut said));
            String::from_utf8_lossy(&said).into_owned()
        });
        let mut parser = EventParser::default();
        let mut failed = false;
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let event = parser.parse(&String::from_utf8_lossy(&line));
            failed |= matches!(
                event,
                Some(Event::Test {
                    result: TestResult::Failed(_),
                    ..
                })
            );
            event.into_iter().for_each(&mut on_event);
        }
        let status = child.wait()?;
        let said = said.join().unwrap_or_default();
        // A failed test is a failure too, but has been passed on.
        if !status.success() && !failed {
            bail!("`{text}` failed ({status}):\n{}", said.trim());
        }
        Ok(())
    }

    /// The command line that runs one test.
    pub(super) fn alone(name: &TestName, ring: u8, runtime: Option<&str>) -> String {
        let runtime = runtime.map(|name| format!(" --runtime {name}"));
        let runtime = runtime.unwrap_or_default();
        format!("cargo xtask test --ring {ring}{runtime} '{name}'")
    }
}

/// Reads the list of tests.
fn programs(list: &Value) -> Result<Programs> {
    let target = list["rust-build-meta"]["target-directory"].as_str();
    let suites = list["rust-suites"].as_object();
    let (target, suites) = target
        .zip(suites)
        .context("the list of tests has no programs")?;
    let mut programs = Programs {
        directory: Path::new(target).join("debug"),
        ..Programs::default()
    };
    for (id, suite) in suites {
        programs
            .paths
            .insert(id.clone(), suite["binary-path"].clone());
        if suite["testcases"]
            .as_object()
            .is_none_or(|all| all.is_empty())
        {
            programs.empty.push(id.clone());
        }
        if suite["package-name"] == RUNTIME_TESTS && suite["kind"] == "test" {
            let name = suite["binary-name"].as_str().unwrap_or_default();
            programs.of_runtimes.push(name.to_owned());
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_without_a_test_and_those_of_runtimes_are_found_in_the_list() {
        let suite = |id: &str, package: &str, kind: &str, tests: &[&str]| {
            let tests: Map<_, _> = tests
                .iter()
                .map(|name| ((*name).to_owned(), Value::Null))
                .collect();
            serde_json::json!({
                "package-name": package, "binary-name": "logs", "kind": kind, "testcases": tests,
                "binary-path": format!("/t/debug/{id}"),
            })
        };
        let list = serde_json::json!({
            "rust-build-meta": { "target-directory": "/t" },
            "rust-suites": {
                "a": suite("a", "a", "lib", &[]),
                "b": suite("b", "b", "test", &["x"]),
                "rubelet-testbed::logs":
                    suite("rubelet-testbed::logs", "rubelet-testbed", "test", &["y"]),
            },
        });
        assert_eq!(
            programs(&list).unwrap(),
            Programs {
                of_runtimes: vec!["logs".into()],
                empty: vec!["a".into()],
                directory: "/t/debug".into(),
                paths: ["a", "b", "rubelet-testbed::logs"]
                    .map(|id| (id.to_owned(), Value::String(format!("/t/debug/{id}"))))
                    .into_iter()
                    .collect(),
            }
        );
        assert!(programs(&Value::Null).is_err());
    }

    #[test]
    fn the_command_for_one_test_names_its_ring_and_runtime() {
        let name = TestName {
            binary: "a::b".into(),
            test: "c::d".into(),
        };
        assert_eq!(
            Nextest::alone(&name, 3, Some("embedded")),
            "cargo xtask test --ring 3 --runtime embedded 'a::b c::d'"
        );
        assert_eq!(
            Nextest::alone(&name, 1, None),
            "cargo xtask test --ring 1 'a::b c::d'"
        );
    }
}
