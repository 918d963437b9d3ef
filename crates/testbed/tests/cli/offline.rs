//! Commands that work without an agent, and the errors of commands that need one.

use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use rubelet_testbed::agent::binary;
use rubelet_testbed::command::stdout_of;
use serde_json::Value;

use crate::{Shown, rubelet};

#[test]
fn without_an_agent_commands_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none.sock");
    let stale = directory.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    for (socket, why) in [
        (&missing, "there is no socket"),
        (&stale, "nothing listens"),
    ] {
        let socket = socket.display().to_string();
        for words in [
            &["get", "pods"][..],
            &["get", "pods", "-w"],
            &["describe", "pod", "x"],
            &["logs", "x"],
            &["events"],
        ] {
            let output = rubelet(&[words, &["--socket", &socket]].concat());
            assert_eq!((output.code, &*output.stdout), (1, ""), "{words:?}");
            let text = &output.stderr;
            assert!(text.starts_with("error: no agent is running: "), "{text}");
            assert!(text.contains(why) && text.contains(&socket), "{text}");
            assert!(text.contains("rubelet run"), "{text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
        let version = rubelet(&["version", "--socket", &socket]);
        assert_eq!(version.code, 0, "{version:?}");
        assert!(version.stdout.contains("agent: not running"), "{version:?}");
    }
}

#[test]
fn versions_of_program_and_agent_are_printed() {
    let shown = Shown::shared();
    let text = shown.stdout(&["version"]);
    let own = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("rubelet: {own}\n")), "{text}");
    let agent = format!("+rubelet.{own}\n");
    assert!(
        text.contains("agent: v1.") && text.contains(&agent),
        "{text}"
    );
    let json: Value = serde_json::from_str(&shown.stdout(&["version", "-o", "json"])).unwrap();
    assert_eq!(json["clientVersion"]["rubelet"], own);
    assert_eq!(json["serverVersion"]["major"], "1");
    assert_eq!(rubelet(&["--version"]).stdout, format!("rubelet {own}\n"));
}

#[test]
fn completion_scripts_are_valid_for_the_shell() {
    let script = rubelet(&["completion", "bash"]);
    assert_eq!((script.code, &*script.stderr), (0, ""));
    assert!(script.stdout.contains("describe"), "{}", script.stdout);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rubelet");
    std::fs::write(&file, &script.stdout).unwrap();
    let complete = "source \"$0\"; COMP_WORDS=(rubelet desc); COMP_CWORD=1; \
                    $(complete -p rubelet | sed 's/.*-F \\([^ ]*\\) .*/\\1/') rubelet desc rubelet; \
                    echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let found = stdout_of(bash.args(["-c", complete]).arg(&file)).unwrap();
    assert_eq!(found.trim(), "describe");
    for shell in ["zsh", "fish"] {
        let script = rubelet(&["completion", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains("rubelet"), "{shell}");
    }
    assert_eq!(rubelet(&["completion", "tcsh"]).code, 2);
}

#[test]
fn a_closed_output_is_not_an_error() {
    let mut child = Command::new(binary().unwrap())
        .args(["config", "show", "--origin"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn help_lists_commands_and_unknown_ones_are_refused() {
    let help = rubelet(&["--help"]);
    assert_eq!(help.code, 0);
    for command in [
        "run", "get", "describe", "logs", "events", "config", "version",
    ] {
        assert!(
            help.stdout.contains(&format!("\n  {command} ")),
            "{}",
            help.stdout
        );
    }
    for words in [&["explode"][..], &[], &["--frobnicate"]] {
        let output = rubelet(words);
        assert_eq!((output.code, &*output.stdout), (2, ""), "{words:?}");
    }
}
