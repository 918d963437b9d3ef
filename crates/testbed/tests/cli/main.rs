//! The command line.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod config;
mod describe;
mod get;
mod net;
mod offline;
mod permission;
mod run;
mod session_ends;
mod sessions;
mod taken;
mod watch;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use outside::{PodText, TIMEOUT, states};
use rubelet_testbed::agent::{CliOutput, binary};
use rubelet_testbed::command::output_of;
use rubelet_testbed::{Agent, TestRuntime, wait};

/// A node with pods for read-only commands.
struct Shown {
    agent: Agent,
    runtime: TestRuntime,
}

impl Shown {
    /// One node for all concurrent tests of this process.
    fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Shown>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let (runtime, agent) = outside::with_pods(&pods());
        let bad = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: bad\nspec:\n  contaners: []\n";
        agent.write_manifest("bad.yaml", bad).unwrap();
        states::wait_manifest(&agent, "bad.yaml", "Bad");
        let started = Arc::new(Self { agent, runtime });
        *shared = Arc::downgrade(&started);
        started
    }

    /// Standard output of a command that succeeds without messages.
    fn stdout(&self, words: &[&str]) -> String {
        let output = self.agent.cli(words).unwrap();
        assert_eq!((output.code, &*output.stderr), (0, ""), "rubelet {words:?}");
        output.stdout
    }

    /// Standard error of a command that exits with this code and prints nothing else.
    fn complaint(&self, code: i32, words: &[&str]) -> String {
        let output = self.agent.cli(words).unwrap();
        assert_eq!(
            (output.code, &*output.stdout),
            (code, ""),
            "rubelet {words:?}"
        );
        assert!(!output.stderr.is_empty(), "rubelet {words:?}");
        output.stderr
    }
}

fn pods() -> [PodText; 5] {
    [
        PodText::new("web")
            .saying("hello from web")
            .label("tier", "front"),
        PodText::new("web2").label("tier", "front"),
        PodText::new("db")
            .init("prepare")
            .container("sidecar")
            .label("tier", "back"),
        PodText::new("done")
            .script("echo finished")
            .spec("restartPolicy", "Never"),
        PodText::new("apart").namespace("other"),
    ]
}

/// Runs `rubelet` without any agent; returns its output.
fn rubelet(words: &[&str]) -> CliOutput {
    ended(Command::new(binary().unwrap()).args(words))
}

/// Output and exit code of a command.
fn ended(command: &mut Command) -> CliOutput {
    let output = output_of(command).unwrap();
    CliOutput {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// Runs an agent that must exit by itself, because it can't start. If it starts, it is killed, and
/// the test fails.
fn refused(command: &mut Command) -> CliOutput {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ended = wait::until("it refuses to start", TIMEOUT, || {
        Ok(child.try_wait()?.map(drop))
    });
    if let Err(error) = ended {
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = child.wait_with_output().unwrap();
    CliOutput {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
    }
}

/// The program under another name.
fn linked_as(name: &str, directory: &Path) -> PathBuf {
    let link = directory.join(name);
    std::os::unix::fs::symlink(binary().unwrap(), &link).unwrap();
    link
}
