//! The examples in the documentation of all crates, which cargo runs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use rubelet_testbed::command::{line, output_of};

use super::record::{TestName, TestOutcome, TestRecord};
use crate::cargo;

/// The name of the stage, and of the program of all examples.
pub(super) const STAGE: &str = "examples";

/// Runs them; returns their results.
///
/// # Errors
/// They don't compile.
pub(super) fn run(root: &Path) -> Result<Vec<TestRecord>> {
    let mut command = cargo::command(root, &["test", "--doc", "--workspace", "--no-fail-fast"]);
    let output = output_of(&mut command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = parse(&text);
    let failed = found
        .iter()
        .any(|test| matches!(test.outcome, TestOutcome::Failed(_)));
    if failed {
        println!("{text}");
    }
    if !output.status.success() && !failed {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed:\n{}", line(&command), said.trim());
    }
    Ok(found)
}

/// The results that libtest prints: `test NAME ... ok`.
fn parse(text: &str) -> Vec<TestRecord> {
    let each = text.lines().filter_map(|line| {
        let (name, result) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        let outcome = match result {
            "ok" => TestOutcome::Passed,
            "FAILED" => TestOutcome::Failed(output_of_example(text, name)),
            _ => return None,
        };
        Some(TestRecord {
            name: TestName {
                binary: STAGE.to_owned(),
                test: name.to_owned(),
            },
            stage: STAGE.to_owned(),
            outcome,
            duration: Duration::ZERO,
        })
    });
    each.collect()
}

/// The output of libtest for a failed example.
fn output_of_example(text: &str, name: &str) -> String {
    let start = format!("---- {name} stdout ----\n");
    let Some((_, rest)) = text.split_once(&start) else {
        return String::new();
    };
    let end = rest.find("\n---- ").or_else(|| rest.find("\nfailures:"));
    rest[..end.unwrap_or(rest.len())].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_output_of_examples_are_read() {
        let text = "\nrunning 2 tests\ntest crates/a/src/lib.rs - (line 3) ... ok\n\
            test crates/a/src/lib.rs - b (line 9) ... FAILED\n\nfailures:\n\n\
            ---- crates/a/src/lib.rs - b (line 9) stdout ----\nno\nway\n\n\nfailures:\n    x\n";
        let found = parse(text);
        let outcomes: Vec<_> = found.iter().map(|test| &test.outcome).collect();
        assert_eq!(
            outcomes,
            [&TestOutcome::Passed, &TestOutcome::Failed("no\nway".into())]
        );
        assert_eq!(found[1].name.test, "crates/a/src/lib.rs - b (line 9)");
    }
}
