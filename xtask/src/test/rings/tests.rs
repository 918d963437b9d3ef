//! Runs the runner on a temporary workspace whose tests misbehave in all ways.

use std::fs;
use std::process::Command;

use super::super::nextest::Nextest;
use super::super::record::{TestOutcome, excerpt};
use super::super::report::{self, Counts};
use super::super::seeds::Seeds;
use super::super::selection::{Part, TestedRuntime};
use super::*;

const MANIFEST: &str = "[package]\nname = \"tiny\"\nedition = \"2024\"\n[workspace]\n";
const CONFIG: &str = "[profile.default]\nleak-timeout = \"100ms\"\n\
    slow-timeout = { period = \"1s\", terminate-after = 2, grace-period = \"0s\" }\n";
const PROGRAM: &str = "fn main() {}\n";
const TESTS: &str = r#"
use std::{env, fs, path::PathBuf, process::Command};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn passes() {}

#[test]
fn fails_once() {
    let mark = file("failed");
    let again = mark.exists();
    fs::write(mark, "").unwrap();
    assert!(again, "for the first time");
}

#[test]
fn fails_always() {
    panic!("for ever");
}

#[test]
fn hangs() {
    loop {
        std::thread::park();
    }
}

#[test]
fn dies() {
    std::process::abort();
}

#[test]
fn leaves_a_process() {
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    fs::write(file("pid"), child.id().to_string()).unwrap();
}

#[test]
fn prints_a_megabyte() {
    for _ in 0..1 << 14 {
        println!("{}", "x".repeat(63));
    }
    panic!("after a megabyte");
}
"#;

#[test]
fn each_misbehaving_test_is_counted_once() {
    // Not the prefix of the test bed: what has it is removed by its sweep.
    let dir = tempfile::Builder::new()
        .prefix("rbt-runner")
        .tempdir()
        .unwrap();
    let root = dir.path();
    for (name, text) in [
        ("Cargo.toml", MANIFEST),
        (".config/nextest.toml", CONFIG),
        ("src/lib.rs", TESTS),
        ("src/main.rs", PROGRAM),
    ] {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let nextest = Nextest::ensure(root).unwrap();
    let built = nextest.build().unwrap();
    assert_eq!(built.empty, ["tiny::bin/tiny"]);
    let error = refuse_empty(&built.empty).unwrap_err().to_string();
    assert!(error.contains("tiny::bin/tiny"), "{error}");

    let mut results = RingResults::default();
    let part = Part {
        ring: 1,
        runtime: TestedRuntime::Containerd,
        all: false,
        cluster_only: false,
        filter: None,
        programs: &[],
        packages: None,
    };
    let environment = Environment {
        agent: root,
        api_server: None,
        seeds: Seeds { first: 0, each: 1 },
        programs: root,
        logs: &root.join("logs"),
        memory: None,
        sweep: || Ok(vec!["a directory".to_owned()]),
    };
    run(&nextest, "ring 1", part, environment, &mut results).unwrap();
    let pid = fs::read_to_string(root.join("pid")).unwrap();
    let killed = Command::new("kill").arg(&pid).status().unwrap();
    assert!(killed.success(), "the process was not there any more");

    let outcome = |name: &str| {
        let mut tests = results.tests.iter();
        let of = tests.find(|test| test.name.test == name);
        &of.unwrap_or_else(|| panic!("{name} is missing")).outcome
    };
    let failed = |name: &str, word: &str| match outcome(name) {
        TestOutcome::Failed(output) => excerpt(output, 5).join("\n").contains(word),
        _ => false,
    };
    assert_eq!(outcome("passes"), &TestOutcome::Passed);
    assert_eq!(outcome("leaves_a_process"), &TestOutcome::Passed);
    assert!(
        matches!(outcome("fails_once"), TestOutcome::Flaky(said) if said.contains("first time"))
    );
    assert!(failed("fails_always", "for ever"));
    assert!(failed("hangs", "time limit"));
    assert!(failed("dies", ""));
    assert!(failed("prints_a_megabyte", "after a megabyte"));
    assert_eq!(
        Counts::of(&results.tests).to_string(),
        "3 passed, 4 failed, 0 skipped"
    );
    assert_eq!(results.left_behind, ["ring 1: a directory"]);
    let lines = report::lines(&results.tests, &root.join("logs"));
    let shown: usize = lines.iter().map(String::len).sum();
    assert!(shown < 20_000, "{shown} characters");
}
