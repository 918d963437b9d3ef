//! Sessions with containers that fail: `exec`, `attach`, `cp` and `port-forward`.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};

use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::{Node, wait};
use serde_json::json;

use crate::own_words;
use crate::snapshot::Snapshot;

#[test]
fn sessions_that_fail() {
    if !own_words() {
        return;
    }
    let node = Node::start().unwrap();
    let memory = json!({ "volumeMounts": [{ "name": "small", "mountPath": "/small" }] });
    let volume = json!({ "name": "small",
        "emptyDir": { "medium": "Memory", "sizeLimit": "64Ki" } });
    let main = with(waiting("main"), &memory);
    let web = json!({ "containers": [main, waiting("sidecar")], "volumes": [volume] });
    node.apply(&pod("web", &web)).unwrap();
    let job = json!({ "restartPolicy": "Never", "containers": [shell("main", "exit 0")] });
    node.apply(&pod("done", &job)).unwrap();
    let absent = json!({ "name": "main", "image": "localhost/none:1", "imagePullPolicy": "Never" });
    node.apply(&pod("stuck", &json!({ "containers": [absent] })))
        .unwrap();
    node.wait_ready("web").unwrap();
    node.wait_end("done").unwrap();
    node.wait_event("stuck", "Failed", "ErrImageNeverPull")
        .unwrap();

    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    File::create(at("big")).unwrap().set_len(0).unwrap();
    fs::write(at("big"), vec![b'x'; 1 << 20]).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("{}:80", taken.local_addr().unwrap().port());

    let mut said = Snapshot::default();
    said.replace(directory.path().display().to_string(), "DIR");
    for name in ["web", "done", "stuck"] {
        said.replace(node.agent().full_name(name), name);
    }
    said.replace(taken.trim_end_matches(":80").to_owned(), "PORT");
    let rows = [exec_rows(), copy_rows(&at), port_rows(&taken)].concat();
    for (problem, words) in rows {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = node.agent().cli(&words).unwrap();
        assert_ne!(output.code, 0, "rubelet {words:?}: {}", output.stdout);
        said.add(
            problem,
            &format!("{}exit code {}", output.stderr, output.code),
        );
    }
    said.add(
        "port-forward: nothing listens in the pod",
        &closed_port(&node, &at("out"), &at("err")),
    );
    said.compare("sessions");
}

/// A problem, and the words of a command that has it.
type Row = (&'static str, Vec<String>);

fn rows(rows: &[(&'static str, &[&str])]) -> Vec<Row> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let rows = rows.iter();
    rows.map(|(problem, words)| (*problem, owned(words)))
        .collect()
}

/// Commands in containers, and attachments.
fn exec_rows() -> Vec<Row> {
    rows(&[
        (
            "exec: a command that the container does not have",
            &["exec", "web", "-q", "--", "serve"],
        ),
        (
            "exec: a file that is not executable",
            &["exec", "web", "-q", "--", "/etc/passwd"],
        ),
        ("exec: no command", &["exec", "web"]),
        (
            "exec: a container that is not there",
            &["exec", "web", "-c", "none", "--", "date"],
        ),
        (
            "exec: a pod that has ended",
            &["exec", "done", "--", "date"],
        ),
        (
            "exec: a container that does not run",
            &["exec", "stuck", "--", "date"],
        ),
        ("attach: a pod that has ended", &["attach", "done"]),
        (
            "attach: a container that does not run",
            &["attach", "stuck"],
        ),
    ])
}

/// Copies; `at` is a file here.
fn copy_rows(at: &dyn Fn(&str) -> String) -> Vec<Row> {
    rows(&[
        ("cp: neither is in a pod", &["cp", "a", "b"]),
        (
            "cp: a file that is not in the container",
            &["cp", "-q", "web:/none", &at("copy")],
        ),
        (
            "cp: a file that is not here",
            &["cp", "-q", &at("none"), "web:/tmp"],
        ),
        (
            "cp: a directory that is not in the container",
            &["cp", "-q", &at("big"), "web:/no/such/directory/"],
        ),
        (
            "cp: a directory that is not here",
            &["cp", "-q", "web:/etc/passwd", &at("none/copy")],
        ),
        (
            "cp: a volume of the container is full",
            &["cp", "-q", &at("big"), "web:/small"],
        ),
        (
            "cp: a file system that takes no files",
            &["cp", "-q", &at("big"), "web:/proc/big"],
        ),
        ("cp: a pod that has ended", &["cp", "done:/etc/passwd", "x"]),
    ])
}

/// Forwarded ports; `taken` is one that is in use.
fn port_rows(taken: &str) -> Vec<Row> {
    rows(&[
        (
            "port-forward: the port is taken on this machine",
            &["port-forward", "web", taken, "--address", "127.0.0.1"],
        ),
        (
            "port-forward: a name that no port has",
            &["port-forward", "web", "http"],
        ),
        (
            "port-forward: not a port",
            &["port-forward", "web", "8080:99999"],
        ),
        (
            "port-forward: an address of another machine",
            &["port-forward", "web", ":80", "--address", "203.0.113.1"],
        ),
        (
            "port-forward: a pod that has ended",
            &["port-forward", "done", ":80"],
        ),
    ])
}

/// What `port-forward` says when a client connects to a port at which nothing listens.
fn closed_port(node: &Node, out: &str, err: &str) -> String {
    let words = ["port-forward", "web", ":81", "--address", "127.0.0.1"];
    let mut command = node.agent().cli_command();
    let command = command
        .args(words)
        .stdout(File::create(out).unwrap())
        .stderr(File::create(err).unwrap());
    let mut forwarding = command.spawn().unwrap();
    let line = |file: &str, what: &str| {
        wait::until(what, TIMEOUT, || {
            let text = fs::read_to_string(file)?;
            let line = text.split_once('\n').map(|(line, _)| line.to_owned());
            Ok(line)
        })
    };
    let listens = line(out, "it listens").unwrap();
    let address = listens.trim_start_matches("Forwarding from ");
    let (address, _) = address.split_once(" -> ").unwrap();
    let port = address.rsplit_once(':').unwrap().1.to_owned();
    let client = TcpStream::connect(address).unwrap();
    let failed = line(err, "it says that the connection failed");
    drop(client);
    forwarding.kill().unwrap();
    forwarding.wait().unwrap();
    failed.unwrap().replace(&port, "PORT")
}
