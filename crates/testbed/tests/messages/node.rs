//! Commands that the agent can't execute, and agents that conflict.

use std::net::{Ipv4Addr, TcpListener};

use rubelet_testbed::agent::free_port;
use rubelet_testbed::manifest::{pod, waiting, with};
use rubelet_testbed::node::TIMEOUT;
use rubelet_testbed::{Agent, Node, TestRuntime, images};
use serde_json::json;

use crate::own_words;
use crate::snapshot::Snapshot;

#[test]
fn commands_to_an_agent_that_cannot_do_it() {
    if !own_words() {
        return;
    }
    let node = Node::start().unwrap();
    let closed = free_port(Ipv4Addr::LOCALHOST.into()).unwrap();
    let unreachable = format!("{}:{closed}/app:1", Ipv4Addr::LOCALHOST);
    for name in ["web-a", "web-b"] {
        let containers = json!([waiting("main"), waiting("sidecar")]);
        node.apply(&pod(name, &json!({ "containers": containers })))
            .unwrap();
    }
    let image = json!({ "name": "main", "image": unreachable, "imagePullPolicy": "Always" });
    node.apply(&pod("stuck", &json!({ "containers": [image] })))
        .unwrap();
    let image = json!({ "image": images::NUMERIC_USER, "imagePullPolicy": "IfNotPresent" });
    let user = with(waiting("main"), &image);
    node.apply(&pod("user", &json!({ "containers": [user] })))
        .unwrap();
    node.wait_ready("user").unwrap();
    node.wait_ready("web-a").unwrap();
    node.wait_ready("web-b").unwrap();
    node.wait_event("stuck", "Failed", "ErrImagePull").unwrap();

    let mut said = Snapshot::default();
    said.replace(node.scratch().dir().display().to_string(), "DIR");
    said.replace(node.agent().full_name("web-a"), "web-a-NODE");
    said.replace(node.agent().full_name("web-b"), "web-b-NODE");
    said.replace(node.agent().full_name("stuck"), "stuck-NODE");
    said.replace(node.agent().full_name("user"), "user-NODE");
    // During a try and right after it; between two tries it is the other.
    said.replace("trying and failing to pull image", "image can't be pulled");
    for (problem, words) in [
        ("A pod that is not there", &["describe", "pod", "none"][..]),
        (
            "A pod in another namespace",
            &["logs", "web-a", "-n", "other"],
        ),
        ("The beginning of two names", &["logs", "web"]),
        ("An invalid selector", &["get", "pods", "-l", "a=b=c"]),
        (
            "A container that is not there",
            &["logs", "web-a", "-c", "none"],
        ),
        ("A container that did not start yet", &["logs", "stuck"]),
        (
            "No instance before the current one",
            &["logs", "web-a", "main", "-p"],
        ),
        (
            "A pod that is not being deleted",
            &["delete", "pod", "web-a", "--now"],
        ),
        (
            "An image that is not there",
            &["image", "inspect", "none:1"],
        ),
        (
            "An image of a registry that is away",
            &["image", "pull", &unreachable],
        ),
        (
            "An image that containers use",
            &["image", "rm", images::NUMERIC_USER],
        ),
        (
            "A file that is no image",
            &["image", "load", "/etc/hostname"],
        ),
    ] {
        let output = node.agent().cli(words).unwrap();
        assert_ne!(output.code, 0, "rubelet {words:?}: {}", output.stdout);
        said.add(
            problem,
            &format!("{}exit code {}", output.stderr, output.code),
        );
    }
    said.compare("node");
}

#[test]
fn agents_in_each_others_way_and_without_a_runtime() {
    if !own_words() {
        return;
    }
    let runtime = TestRuntime::start().unwrap();
    let mut first = Agent::builder(&runtime).start().unwrap();
    first.wait_ready(TIMEOUT).unwrap();
    let elsewhere = TestRuntime::start().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let socket = first.api_socket().display().to_string();
    let root = first.root_dir().display().to_string();
    let no_runtime = format!("unix://{}/none.sock", elsewhere.scratch().dir().display());
    let mut said = Snapshot::default();
    said.replace(runtime.scratch().dir().display().to_string(), "FIRST");
    said.replace(elsewhere.scratch().dir().display().to_string(), "SECOND");
    said.replace(runtime.scratch().bridge(), "BRIDGE");
    let pid = first.pid().unwrap();
    said.replace(format!("process {pid}"), "process PID");
    let builder = || Agent::builder(&elsewhere);
    let mut rows = vec![
        (
            "The health port is taken",
            builder().config("healthzPort", port),
        ),
        (
            "The agent's socket is taken",
            builder().own_option("socket", socket),
        ),
        (
            "The root directory is taken",
            builder().flag(format!("--root-dir={root}")),
        ),
        (
            "The group of the socket is not there",
            builder().own_option("socketGroup", "no-such-group"),
        ),
    ];
    let bridge = runtime.scratch().bridge();
    rows.push(("The runtime's directory is taken", Agent::builder(&runtime)));
    rows.push((
        "The bridge is taken",
        builder().flag(format!("--runtime-bridge={bridge}")),
    ));
    for (problem, builder) in rows {
        let second = builder.start().unwrap();
        let never = second.wait_for("it runs", TIMEOUT, |_| Ok(None::<()>));
        never.unwrap_err();
        let log = std::fs::read_to_string(second.log_path()).unwrap();
        let errors: Vec<&str> = log.lines().filter(|l| l.starts_with("error")).collect();
        said.add(problem, &errors.join("\n"));
    }
    let mut second = builder().endpoint(no_runtime).start().unwrap();
    let words = second.wait_for("it reports that no runtime answers", TIMEOUT, |agent| {
        let output = agent.cli(&["status"])?;
        let line = output
            .stdout
            .lines()
            .find(|line| line.contains("none.sock"));
        Ok(line.map(|line| line.trim().to_owned()))
    });
    said.add("No runtime answers", &words.unwrap());
    second.kill9().unwrap();
    first.terminate().unwrap();
    said.compare("agents");
}
