//! Invalid commands, and commands without an agent.

use std::path::Path;
use std::process::Command;

use rubelet_testbed::agent::binary;
use rubelet_testbed::command::output_of;

use crate::snapshot::Snapshot;

/// What a command prints on standard error, with its exit code; without its log.
pub(crate) fn message(command: &mut Command) -> String {
    let output = output_of(command).unwrap();
    let code = output.status.code().unwrap_or(-1);
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_log(line)).collect();
    let code = format!("exit code {code}");
    lines.push(&code);
    lines.join("\n")
}

/// Whether the line begins as klog's do: a letter for its severity, month and day.
fn is_log(line: &str) -> bool {
    let digits = line.get(1..5).unwrap_or_default();
    line.starts_with(['I', 'W', 'E'])
        && digits.bytes().all(|c| c.is_ascii_digit())
        && !digits.is_empty()
}

fn rubelet(words: &[&str]) -> Command {
    let mut command = Command::new(binary().unwrap());
    command.args(words);
    command
}

/// A command of a user who is not root. The program is a copy, because other users may have no
/// access to the build directory.
fn as_nobody(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(program)
        .args(words);
    command
}

#[test]
fn commands_that_are_wrong_or_have_no_agent() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let mut said = Snapshot::default();
    said.replace(directory.path().display().to_string(), "DIR");
    let socket = format!("--socket={}", at("none.sock"));
    for (problem, words) in [
        ("A command that is not there", &["explode"][..]),
        (
            "An option that is not there",
            &["get", "pods", "--frobnicate"],
        ),
        ("An argument is missing", &["logs"]),
        ("A kind of object that is not there", &["get", "services"]),
        (
            "A form of output that is not there",
            &["get", "pods", "-o", "table"],
        ),
        (
            "An invalid duration",
            &["logs", "web", "--since", "yesterday"],
        ),
        ("No agent is running", &["get", "pods", &socket]),
    ] {
        said.add(problem, &message(&mut rubelet(words)));
    }
    let program = directory.path().join("rubelet");
    std::fs::copy(binary().unwrap(), &program).unwrap();
    open_to_all(directory.path());
    let _socket = std::os::unix::net::UnixListener::bind(at("closed.sock")).unwrap();
    let closed = format!("--socket={}", at("closed.sock"));
    let mut command = as_nobody(&program, &["get", "pods", &closed]);
    said.add(
        "No permission to use the agent's socket",
        &message(&mut command),
    );
    let mut command = as_nobody(&program, &["run", "--root-dir", &at("root")]);
    said.add("The agent is started without root", &message(&mut command));
    let mut command = rubelet(&["completion", "bash"]);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    // `output` would take standard output itself.
    let output = command.stdout(full).stderr(std::process::Stdio::piped());
    let output = output.spawn().unwrap().wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap_or(-1);
    said.add(
        "The disk that output goes to is full",
        &format!("{text}exit code {code}"),
    );
    said.compare("commands");
}

fn open_to_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory, mode).unwrap();
}
