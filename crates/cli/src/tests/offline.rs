//! Without an agent: what is said, and what works all the same.

use std::{os::unix::net::UnixListener, path::Path};

use super::fixture::{Ended, Screens, TestAgent, type_words, words_at};

fn type_at(socket: &Path, command: &str) -> Ended {
    type_words(words_at(socket, command), &Screens::default(), false)
}

#[test]
fn an_agent_that_does_not_run_is_one_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none.sock");
    let stale = directory.path().join("stale.sock");
    drop(UnixListener::bind(&stale).unwrap());
    for (socket, why) in [
        (missing, "there is no socket"),
        (stale, "nothing listens on"),
    ] {
        for command in [
            "get pods",
            "describe pod x",
            "logs x",
            "events",
            "get pods -w",
        ] {
            let error = type_at(&socket, command).error(1);
            assert!(error.starts_with("error: no agent is running: "), "{error}");
            for part in [
                why,
                &socket.display().to_string(),
                "systemctl status",
                "rubelet run",
            ] {
                assert!(error.contains(part), "{part}: {error}");
            }
            assert_eq!(error.lines().count(), 1);
        }
    }
}

#[test]
fn a_path_that_is_no_socket_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    assert_eq!(
        type_at(directory.path(), "get pods").error(1),
        format!("error: {path} is not a socket; give the agent's with --socket\n")
    );
}

#[test]
fn something_else_on_the_socket_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("other.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"220 mail.example.com\r\n").unwrap();
    });
    let error = type_at(&socket, "get pods").error(1);
    assert!(
        error.starts_with("error: invalid response from the agent on "),
        "{error}"
    );
    other.join().unwrap();
}

#[test]
fn the_version_is_known_with_and_without_an_agent() {
    let directory = tempfile::tempdir().unwrap();
    let own = format!(
        "rubelet: {}\nKubernetes API: v1.36\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(
        type_at(&directory.path().join("none.sock"), "version").data(),
        format!("{own}agent: not running, or not reachable from here\n")
    );
    let agent = TestAgent::start();
    let server = rubelet_server::git_version();
    assert_eq!(
        agent.type_in("version").data(),
        format!("{own}agent: {server}\n")
    );
    let json: serde_json::Value =
        serde_json::from_str(&agent.type_in("version -o json").data()).unwrap();
    assert_eq!(json["serverVersion"]["gitVersion"], server);
}

#[test]
fn completion_scripts_know_the_commands() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = type_at(directory.path(), &format!("completion {shell}")).data();
        assert!(
            script.contains("describe") && script.contains("rubelet"),
            "{shell}"
        );
    }
    type_at(directory.path(), "completion tcsh").error(2);
}
