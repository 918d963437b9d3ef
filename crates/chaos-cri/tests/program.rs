//! The program: options, exit codes, output.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

use std::{
    io::{BufRead, BufReader, Read},
    process::{Command, Output, Stdio},
};

use rubelet_cri::{RuntimeService, v1};
use rubelet_cri_grpc::{CriClient, Timeouts};
use rubelet_sim::Sim;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixListener;

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaos-cri"));
    command.args(words);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn errors_in_arguments_are_reported_with_their_position() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (socket, file) = (path("front"), path("rules"));
    std::fs::write(&file, "Version hang\nStatus hnag # a typo\n").unwrap();
    for (words, code, part) in [
        (
            vec!["--rule", "Status hnag"],
            2,
            "column 8: there is no fault \"hnag\"",
        ),
        (
            vec!["--rules", &file],
            1,
            "rules: line 2, column 8: there is no fault \"hnag\"",
        ),
        (vec!["--rules", "/nowhere"], 1, "cannot read /nowhere"),
        (vec!["--profile", "calm"], 2, "light"),
        (vec!["--runtime", &socket], 1, "the same socket"),
        (vec!["--runtime", "tcp://1.2.3.4"], 2, "not the path"),
    ] {
        let output = program(&["--listen", &socket])
            .args(&words)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}");
        assert!(
            stderr(&output).contains(part),
            "{words:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn the_help_explains_every_fault() {
    let output = program(&["--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let output = program(&["--listen", "/tmp/x", "--rule", "Status explode"])
        .output()
        .unwrap();
    let output = stderr(&output);
    let names = output
        .split("there are ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let names: Vec<&str> = names.split(", ").collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let begins = |line: &str| line.trim_start().starts_with(name);
        assert!(help.lines().any(begins), "{name}");
    }
}

#[tokio::test]
async fn faults_are_logged_and_counted_at_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (front, back) = (path("front"), path("back"));
    let sim = Sim::new();
    let listener = UnixListener::bind(&back).unwrap();
    tokio::spawn(rubelet_cri_grpc::serve(
        listener,
        sim.runtime(),
        sim.images(),
        std::future::pending(),
    ));
    let rule = "Version fail=INTERNAL times=2";
    let mut child = program(&[
        "--listen",
        &front,
        "--runtime",
        &back,
        "--seed",
        "7",
        "--rule",
        rule,
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut output = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    output.read_line(&mut first).unwrap();
    assert!(first.contains("seed 7"), "{first}");
    let client = CriClient::connect_lazy(&front, Timeouts::default()).unwrap();
    let version = || client.version(v1::VersionRequest::default());
    for fails in [true, true, false] {
        assert_eq!(version().await.is_err(), fails);
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (mut log, mut summary) = (String::new(), String::new());
    output.read_to_string(&mut log).unwrap();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut summary)
        .unwrap();
    assert!(child.wait().unwrap().success());
    let injected: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("Injected #"))
        .collect();
    assert_eq!(injected.len(), 2, "{log}");
    assert!(
        injected[1].contains(&format!("#2 seed=7 rule=\"{rule}\": Version")),
        "{log}"
    );
    assert!(summary.contains("seed 7: 2 faults injected"), "{summary}");
    assert!(summary.contains(&format!("2  {rule}")), "{summary}");
    assert!(!directory.path().join("front").exists());
}
