//! The rings of tests: each is one call of `cargo test`, whose results are counted.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rubelet_testbed::api_server::{self, programs::Programs};
use rubelet_testbed::command::line;
use rubelet_testbed::runtime::{Kind, VARIABLE};
use rubelet_testbed::sweep;
use serde_json::Value;

use super::cluster;
use super::tally::{Skipped, Tally};
use crate::cargo;

/// All rings, in the order in which they run.
pub(super) const ALL: [u8; 3] = [1, 2, 3];
/// Where the tests that start a runtime and the agent are.
const RUNTIME_TESTS: &str = "crates/testbed/tests";
/// Programs that say something about containerd only: the test bed itself, its lines, and what an
/// agent does while a runtime in another process is away.
const CONTAINERD_ONLY: [&str; 4] = ["containerd", "health", "lines", "runtime_restart"];
/// Programs that say something about the embedded runtime only. `cri` runs on containerd too, by
/// hand: what fails there is containerd's.
const EMBEDDED_ONLY: [&str; 3] = ["cgroup_v2", "cri", "faults"];
/// How many of those run at the same time: each keeps both cores of a small machine busy.
const RUNTIME_THREADS: &str = "2";
/// How long the name of a program that has ended is waited for: cargo wrote it before.
const NAME_WAIT: Duration = Duration::from_secs(10);

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
    /// The API server of clusters, if it is no model; then nothing but tests of clusters is run.
    pub(super) api_server: Option<&'a Programs>,
    /// Only tests whose name contains this, or all tests of the program of this name.
    pub(super) filter: Option<&'a str>,
}

/// Runs it, showing what the tests print, and adds their results to `tally`.
pub(super) fn run(root: &Path, part: Part<'_>, tally: &mut Tally) -> Result<()> {
    let Part {
        ring,
        runtime,
        agent,
        api_server,
        mut filter,
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
            let mut names = runtime_tests(root, runtime)?;
            if api_server.is_some() {
                names.retain(|name| cluster::PROGRAMS.contains(&name.as_str()));
            }
            filter = only_program(&mut names, filter);
            command.args(["--package", "rubelet-testbed"]);
            command.args(names.iter().flat_map(|name| ["--test", name]))
        }
    };
    command.args(filter);
    if let Some(programs) = api_server {
        command.env(api_server::VARIABLE, programs.dir());
    }
    if let Some(agent) = agent {
        command.env("RUBELET_BIN", agent);
    }
    command.env(VARIABLE, runtime.name());
    if needs_agent(ring) {
        command.args(["--", "--test-threads", RUNTIME_THREADS]);
    }
    // Errors of tests say what happened; where an error value was made says nothing more.
    command.env("RUST_LIB_BACKTRACE", "0");
    let skipped = Skipped::new()?;
    command.env(rubelet_needs::SKIPPED, skipped.path());
    let good = show(&mut command, tally)?;
    tally.take_out(&skipped.read()?);
    let left = sweep()?;
    if !good {
        bail!("`{}` failed", line(&command));
    }
    if filter.is_none() && !tally.empty().is_empty() {
        let metadata = crate::workspace::metadata(root)?;
        if let Some(program) = without_need(&metadata, tally.empty()) {
            bail!("{program} has no test: give it one, or say `test = false` in its manifest");
        }
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

/// The names of the test programs that need the agent.
fn runtime_tests(root: &Path, runtime: Kind) -> Result<Vec<String>> {
    let dir = root.join(RUNTIME_TESTS);
    let entries =
        std::fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_program = name.ends_with(".rs") || entry.path().join("main.rs").is_file();
        if is_program {
            names.push(name.trim_end_matches(".rs").to_owned());
        }
    }
    names.retain(|name| is_about(runtime, name));
    names.sort();
    Ok(names)
}

/// If the filter is the name of one of these test programs, only that one is left, and no filter.
fn only_program<'a>(names: &mut Vec<String>, filter: Option<&'a str>) -> Option<&'a str> {
    let is_it = |name: &String| Some(name.as_str()) == filter;
    if !names.iter().any(is_it) {
        return filter;
    }
    names.retain(is_it);
    None
}

/// The first of these programs, as cargo calls them when it runs them, that ought to have a test.
fn without_need<'a>(metadata: &Value, programs: &'a [String]) -> Option<&'a str> {
    let array = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let packages = array(metadata, "packages");
    // Cargo runs programs without tests all the same when all of a kind are asked for.
    let free: Vec<String> = packages
        .iter()
        .flat_map(|package| array(package, "targets"))
        .filter(|target| target["test"] == false)
        .filter_map(|target| Some(target["name"].as_str()?.replace('-', "_")))
        .collect();
    let is_free = |program: &str| {
        let file = program.rsplit('/').next().unwrap_or_default();
        let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
        free.iter().any(|one| one == name)
    };
    programs
        .iter()
        .map(String::as_str)
        .find(|program| !is_free(program))
}

/// Runs the command, passing on what it prints; whether it ended well.
fn show(command: &mut Command, tally: &mut Tally) -> Result<bool> {
    let text = line(command);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{text}`"))?;
    let pipes = child.stdout.take().zip(child.stderr.take());
    let (stdout, stderr) = pipes.context("the output of the tests is not a pipe")?;
    // Cargo names each program on stderr, and each says once on stdout how it ended: the first result is
    // the first name's. What a test left running may keep stderr open, so nobody waits for its end.
    let (send, names) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines(stderr) {
            eprintln!("{line}");
            if let Some(name) = line.trim_start().strip_prefix("Running ") {
                // Whether anybody still asks for names is all the same to the output.
                drop(send.send(name.to_owned()));
            }
        }
    });
    for line in lines(stdout) {
        println!("{line}");
        tally.add(&line, || {
            names
                .recv_timeout(NAME_WAIT)
                .unwrap_or_else(|_| text.clone())
        });
    }
    Ok(child.wait()?.success())
}

fn lines(from: impl Read) -> impl Iterator<Item = String> {
    let lines = BufReader::new(from).split(b'\n').map_while(Result::ok);
    lines.map(|line| String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_whose_manifest_says_so_may_be_without_tests() {
        let metadata = serde_json::json!({ "packages": [{ "targets": [
            { "name": "chaos-cri", "test": false },
            { "name": "other", "test": true },
        ]}]});
        let program = |name: &str| format!("unittests src/main.rs (target/debug/deps/{name}-12ab)");
        let programs = [program("chaos_cri"), program("other")];
        assert_eq!(without_need(&metadata, &programs[..1]), None);
        assert_eq!(without_need(&metadata, &programs), Some(&*programs[1]));
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
    fn a_filter_that_is_the_name_of_a_test_program_means_all_of_it() {
        let all = || vec!["cluster".to_owned(), "logs".to_owned()];
        for (filter, left, names) in [
            (Some("cluster"), None, &["cluster"][..]),
            (Some("clus"), Some("clus"), &["cluster", "logs"]),
            (None, None, &["cluster", "logs"]),
        ] {
            let mut found = all();
            assert_eq!(only_program(&mut found, filter), left);
            assert_eq!(found, names, "{filter:?}");
        }
    }
}
