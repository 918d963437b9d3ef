//! `rubelet exec`, `attach` and `port-forward`.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
};

use rubelet_server::Resource;
use serde_json::json;

use super::fixture::{Following, TestAgent, pod};

fn agent() -> TestAgent {
    let agent = TestAgent::start();
    agent
        .node
        .put(Resource::Pods, pod("default", "web-n1", "web"));
    let mut two = pod("default", "two-n1", "two");
    two["spec"]["containers"] = json!([
        { "name": "main", "ports": [{ "name": "http", "containerPort": 8080 }] },
        { "name": "side", "tty": true, "stdin": true },
    ]);
    agent.node.put(Resource::Pods, two);
    let mut done = pod("default", "done-n1", "done");
    done["status"]["phase"] = "Succeeded".into();
    agent.node.put(Resource::Pods, done);
    agent
}

#[test]
fn a_command_is_run_and_its_exit_code_is_the_program_s() {
    let agent = agent();
    let ended = agent.pipe("exec web -- echo hello world", "");
    assert_eq!(ended.data(), "hello world\n");
    let ended = agent.pipe("exec pod/web-n1 -i -- cat", "over\nthere");
    assert_eq!(ended.data(), "over\nthere");
    for (code, expected) in [(3, 3), (137, 137), (256, 1)] {
        let ended = agent.pipe(&format!("exec web -- exit {code}"), "");
        let told = format!("command terminated with exit code {code}\n");
        assert_eq!((ended.code, ended.err), (expected, told));
    }
}

#[test]
fn a_session_that_breaks_is_an_error_with_one_message() {
    let agent = agent();
    let ended = agent.pipe("exec web -- break", "");
    assert_eq!((ended.code, ended.out.as_str()), (1, "half"));
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(ended.err.starts_with("error: "), "{}", ended.err);
    assert!(ended.err.contains("the agent stopped"), "{}", ended.err);
}

#[test]
fn the_first_container_is_meant_unless_one_is_named() {
    let agent = agent();
    let ended = agent.pipe("exec two -- container", "");
    assert_eq!((ended.code, ended.out.as_str()), (0, "main"));
    assert_eq!(
        ended.err,
        "Defaulted container \"main\" out of: main, side\n"
    );
    assert_eq!(agent.pipe("exec two -q -- container", "").data(), "main");
    assert_eq!(
        agent.pipe("exec two -c side -- container", "").data(),
        "side"
    );
    let told = agent.pipe("exec two -c nope -- container", "").error(1);
    assert_eq!(
        told,
        "error: container nope not found in pod two-n1; it has main, side\n"
    );
}

#[test]
fn input_that_is_no_terminal_gets_none() {
    let agent = agent();
    let ended = agent.pipe("exec -it web -- streams", "");
    let expected = "StdStreams { stdin: true, stdout: true, stderr: true, tty: false }";
    assert_eq!((ended.code, ended.out.as_str()), (0, expected));
    let told = "Unable to use a TTY - input is not a terminal or the right kind of file\n";
    assert_eq!(ended.err, told);
    let ended = agent.pipe("exec -t web -- streams", "");
    assert!(ended.data().contains("stdin: false"));
}

#[test]
fn an_attachment_has_what_the_container_has() {
    let agent = agent();
    let prompt = "If you don't see a command prompt, try pressing enter.\n";
    let ended = agent.pipe("attach web", "");
    assert_eq!((ended.code, ended.out.as_str()), (0, "attached to main\n"));
    assert_eq!(ended.err, prompt);
    let ended = agent.pipe("attach web -it", "");
    let told = "error: Unable to use a TTY - container main did not allocate one\n";
    assert_eq!(ended.err, format!("{told}{prompt}"));
    let ended = agent.pipe("attach two -c side -q", "");
    assert_eq!(ended.data(), "attached to side\n");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_asked() {
    let agent = agent();
    for (command, part) in [
        ("exec web", "give a command behind `--`"),
        ("exec web echo", "give a command behind `--`"),
        ("exec -- echo", "required"),
        ("port-forward web", "required"),
        ("port-forward web 1:2:3", "is not [LOCAL_PORT:]REMOTE_PORT"),
        (
            "port-forward web 80 --address here",
            "neither an IP address",
        ),
    ] {
        let told = agent.type_in(command).error(2);
        assert!(told.contains(part), "{command}: {told}");
    }
    for command in ["exec done -- x", "attach done", "port-forward done 80"] {
        let told = agent.type_in(command).error(1);
        assert!(
            told.contains("the phase of pod done-n1 is Succeeded"),
            "{told}"
        );
    }
}

/// Forwards ports; returns those that were chosen here.
fn forward(agent: &TestAgent, words: &str, lines: usize) -> (Following, Vec<u16>) {
    let following = agent.follow(words);
    let lines = following.screen.take_lines(lines);
    let port = |line: &String| {
        let (address, _) = line.split_once(" -> ").unwrap();
        address.rsplit_once(':').unwrap().1.parse().unwrap()
    };
    let ports = lines.iter().map(port).collect();
    (following, ports)
}

fn ask(port: u16, text: &str) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.write_all(text.as_bytes()).unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn ports_are_forwarded_until_the_pod_is_gone() {
    let agent = agent();
    let (following, ports) = forward(&agent, "port-forward two :http :1 --address 127.0.0.1", 2);
    let (echo, refuses) = (ports[0], ports[1]);
    assert_eq!(ask(echo, "hello"), "hello");
    let handled = following.screen.take_lines(1);
    assert_eq!(handled, [format!("Handling connection for {echo}")]);
    assert_eq!(ask(refuses, ""), "");
    let told = following.errors.take_lines(1);
    assert!(
        told[0].starts_with(&format!("error: forwarding {refuses} -> 1: ")),
        "{told:?}"
    );
    // The others go on.
    assert_eq!(ask(echo, "again"), "again");
    let mut ended = pod("default", "two-n1", "two");
    ended["status"]["phase"] = "Failed".into();
    agent.node.put(Resource::Pods, ended);
    let ended = following.thread.join().unwrap();
    assert_eq!(ended.code, 1);
    let told = "error: lost connection to pod two-n1: it has ended, its phase is Failed\n";
    assert_eq!(ended.err, told);
}

#[test]
fn an_agent_that_stops_ends_the_forwarding() {
    let mut agent = agent();
    let (following, ports) = forward(&agent, "port-forward web :80 --address 127.0.0.1", 1);
    assert_eq!(ask(ports[0], "x"), "x");
    agent.stop();
    let ended = following.thread.join().unwrap();
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("lost connection to pod web-n1"),
        "{}",
        ended.err
    );
}

#[test]
fn a_port_that_is_taken_does_not_stop_the_others() {
    let agent = agent();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let words = format!("port-forward web {port}:80 :81 --address 127.0.0.1");
    let (following, ports) = forward(&agent, &words, 1);
    let told = following.errors.take_lines(1);
    assert!(
        told[0].starts_with(&format!("Unable to listen on port {port}: 127.0.0.1:")),
        "{told:?}"
    );
    assert_eq!(ask(ports[0], "x"), "x");
    let words = format!("port-forward web {port}:80 --address 127.0.0.1");
    let ended = agent.type_in(&words);
    assert!(
        ended
            .err
            .ends_with("error: unable to listen on any of the requested ports\n")
    );
    drop(agent);
    following.thread.join().unwrap();
}
