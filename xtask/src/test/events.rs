//! The events that cargo-nextest prints while tests run, one JSON object per line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::record::TestName;

/// A test program that ended, or a test with its result.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Test {
        name: TestName,
        result: TestResult,
        duration: Duration,
    },
    Program {
        binary: String,
        passed: u64,
        failed: u64,
        duration: Duration,
    },
}

/// The result of one run of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TestResult {
    Passed,
    /// With its output and the reason, if one is given.
    Failed(String),
    Ignored,
}

/// Parses events; a program's events do not repeat its kind, so it is remembered.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    /// The IDs of test programs, by package and program.
    binaries: BTreeMap<(String, String), String>,
}

impl EventParser {
    /// The event of a line; `None` if it is not an event, or one without a result.
    pub(super) fn parse(&mut self, line: &str) -> Option<Event> {
        let value: Value = serde_json::from_str(line).ok()?;
        match value["type"].as_str()? {
            "suite" => self.program(&value),
            "test" => self.test(&value),
            _ => None,
        }
    }

    fn program(&mut self, value: &Value) -> Option<Event> {
        let of = &value["nextest"];
        let text = |name: &str| of[name].as_str().map(str::to_owned);
        let (package, program) = (text("crate")?, text("test_binary")?);
        let binary = binary_id(&package, &program, of["kind"].as_str()?);
        self.binaries.insert((package, program), binary.clone());
        if value["event"] == "started" {
            return None;
        }
        Some(Event::Program {
            binary,
            passed: value["passed"].as_u64()?,
            failed: value["failed"].as_u64()?,
            duration: seconds(value),
        })
    }

    fn test(&self, value: &Value) -> Option<Event> {
        let (program, test) = value["name"].as_str()?.split_once('$')?;
        let (package, program) = program.split_once("::")?;
        let key = (package.to_owned(), program.to_owned());
        let result = match value["event"].as_str()? {
            "ok" => TestResult::Passed,
            "failed" => TestResult::Failed(failure(value)),
            "ignored" => TestResult::Ignored,
            _ => return None,
        };
        Some(Event::Test {
            name: TestName {
                binary: self.binaries.get(&key)?.clone(),
                test: test.to_owned(),
            },
            result,
            duration: seconds(value),
        })
    }
}

/// The ID of a test program in filters.
fn binary_id(package: &str, program: &str, kind: &str) -> String {
    match kind {
        "lib" | "proc-macro" => package.to_owned(),
        "test" => format!("{package}::{program}"),
        kind => format!("{package}::{kind}/{program}"),
    }
}

fn failure(value: &Value) -> String {
    let output = value["stdout"].as_str().unwrap_or_default();
    let reason = value["reason"].as_str();
    match (reason, output.trim().is_empty()) {
        (Some(reason), _) => format!("{output}\n{reason}"),
        (None, true) => "it was killed or exited without output".to_owned(),
        (None, false) => output.to_owned(),
    }
}

fn seconds(value: &Value) -> Duration {
    let seconds = value["exec_time"].as_f64().unwrap_or_default();
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(lines: &[&str]) -> Vec<Event> {
        let mut parser = EventParser::default();
        lines.iter().filter_map(|line| parser.parse(line)).collect()
    }

    fn suite(event: &str, kind: &str) -> String {
        format!(
            r#"{{"type":"suite","event":"{event}","test_count":2,"passed":1,"failed":1,"exec_time":2.5,"nextest":{{"crate":"a","test_binary":"b","kind":"{kind}"}}}}"#
        )
    }

    #[test]
    fn results_are_parsed_and_starts_ignored() {
        let found = events(&[
            &suite("started", "test"),
            r#"{"type":"test","event":"started","name":"a::b$x::y"}"#,
            r#"{"type":"test","event":"ok","name":"a::b$x::y","exec_time":0.5}"#,
            r#"{"type":"test","event":"failed","name":"a::b$z","exec_time":1,"stdout":"no"}"#,
            r#"{"type":"test","event":"ignored","name":"a::b$w"}"#,
            &suite("failed", "test"),
            "nonsense",
        ]);
        let test = |name: &str, result, millis| Event::Test {
            name: TestName {
                binary: "a::b".into(),
                test: name.into(),
            },
            result,
            duration: Duration::from_millis(millis),
        };
        assert_eq!(
            found,
            [
                test("x::y", TestResult::Passed, 500),
                test("z", TestResult::Failed("no".into()), 1000),
                test("w", TestResult::Ignored, 0),
                Event::Program {
                    binary: "a::b".into(),
                    passed: 1,
                    failed: 1,
                    duration: Duration::from_millis(2500),
                },
            ]
        );
    }

    #[test]
    fn programs_are_named_as_in_filters() {
        for (kind, id) in [("lib", "a"), ("test", "a::b"), ("bin", "a::bin/b")] {
            assert_eq!(binary_id("a", "b", kind), id);
        }
    }

    #[test]
    fn a_failure_always_has_a_reason() {
        let started = suite("started", "lib");
        for (line, text) in [
            (
                r#"{"type":"test","event":"failed","name":"a::b$z","stdout":""}"#,
                "it was killed or exited without output",
            ),
            (
                r#"{"type":"test","event":"failed","name":"a::b$z","reason":"time limit exceeded"}"#,
                "\ntime limit exceeded",
            ),
        ] {
            let found = events(&[&started, line]);
            let [Event::Test { result, .. }] = &found[..] else {
                panic!("{found:?}");
            };
            assert_eq!(*result, TestResult::Failed(text.into()));
        }
    }
}
