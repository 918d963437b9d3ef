//! Ephemeral containers.

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::images::BUSYBOX_IMAGE;
use rubelet_testbed::manifest::{pod, shell, waiting};
use rubelet_testbed::status::{container, ended, is_ready, restarts};
use serde_json::{Value, json};

use crate::outside::kubectl::Kubectl;

/// A pod whose container `main` has a recognizable process.
fn target(name: &str) -> Value {
    let main = shell(
        "main",
        "trap 'exit 0' TERM; while :; do sleep 4242 & wait $!; done",
    );
    pod(name, &json!({ "containers": [main, waiting("other")] }))
}

#[test]
fn rubelet_debug_adds_a_container_with_its_target() -> Result<()> {
    let node = Node::shared()?;
    node.apply(&target("debug"))?;
    let before = node.wait_ready("debug")?;
    let place = crate::place(&node, "debug")?;
    let full = "pod/debug-testnode";
    let look = ["sh", "-c", "ps; ls /proc/1/root/pause; echo seen; exit 5"];
    let mut words = vec!["debug", full, "--image", BUSYBOX_IMAGE, "--target", "main"];
    words.extend(["-c", "look", "--"]);
    words.extend(look);
    let said = node.cli(&words)?;
    assert!(
        said.contains("ephemeral container look was added"),
        "{said}"
    );
    let seen = node.wait("debug", "has been looked at", |pod| {
        ended(pod, "look").is_object()
    })?;
    assert_eq!(ended(&seen, "look")["exitCode"], 5);
    let log = node.cli(&["logs", full, "-c", "look"])?;
    assert!(log.contains("sleep 4242"), "the target's processes: {log}");
    assert!(
        log.contains("/proc/1/root/pause"),
        "the target's files: {log}"
    );
    assert!(log.ends_with("seen\n"), "{log}");

    // A second one shares the pod's network, but has its own PID namespace.
    let words = [
        "debug",
        full,
        "--image",
        BUSYBOX_IMAGE,
        "-c",
        "alone",
        "--",
        "sh",
        "-c",
    ];
    let script = "ps; hostname -i; sleep 3600";
    node.cli(&[words.as_slice(), &[script]].concat())?;
    let log = node.wait_log("debug", "alone", place.1.as_str().unwrap())?;
    assert!(!log.contains("sleep 4242"), "{log}");
    let seen = node.wait("debug", "runs the second one", |pod| {
        container(pod, "alone")["state"]["running"].is_object()
    })?;
    assert_eq!(restarts(&seen, "look"), 0, "nothing starts it again");
    assert!(is_ready(&seen), "it does not count for the pod");
    assert_eq!(seen["spec"]["ephemeralContainers"][0]["name"], "look");
    for name in ["main", "other"] {
        let id = |pod: &Value| container(pod, name)["containerID"].clone();
        assert_eq!(id(&seen), id(&before), "{name} was not touched");
    }
    assert_eq!(crate::place(&node, "debug")?, place);
    let made = node.containers("debug")?;
    assert_eq!(made.iter().filter(|one| one.name == "look").count(), 1);

    let again = node
        .agent()
        .cli(&["debug", full, "--image", "x", "-c", "look"])?;
    assert_eq!(again.code, 1);
    assert!(
        again.stderr.contains("\"look\" already"),
        "{}",
        again.stderr
    );
    node.remove("debug")?;
    node.wait_gone("debug")?;
    assert_eq!(node.containers("debug")?, [], "it goes with its pod");
    Ok(())
}

#[test]
fn ephemeral_containers_are_patched_and_validated() -> Result<()> {
    let node = Node::shared()?;
    node.apply(&target("patched"))?;
    node.wait_ready("patched")?;
    let path = "/api/v1/namespaces/default/pods/patched-testnode/ephemeralcontainers";
    let patch = |container: Value| {
        let patch = json!({ "spec": { "ephemeralContainers": [container] } });
        node.agent().patch(path, "strategic-merge-patch", &patch)
    };
    let good = json!({
        "name": "raw",
        "image": BUSYBOX_IMAGE,
        "command": ["sh", "-c", "echo raw; sleep 3600"],
        "targetContainerName": "main",
    });
    let answer = patch(good.clone())?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    node.wait_log("patched", "raw", "raw")?;
    for (bad, status, word) in [
        (json!({ "name": "main", "image": "x" }), 422, "main"),
        (
            json!({ "name": "x", "image": "x", "targetContainerName": "nobody" }),
            422,
            "nobody",
        ),
        (
            json!({ "name": "raw", "image": "another" }),
            422,
            "ephemeralContainers",
        ),
    ] {
        let answer = patch(bad.clone())?;
        assert_eq!(answer.status, status, "{bad}: {}", answer.text());
        assert!(answer.text().contains(word), "{bad}: {}", answer.text());
    }

    let kubectl = Kubectl::to(&node.agent().api_socket());
    // Versions before 1.24 need an API that Kubernetes has removed.
    if !rubelet_needs::applies(kubectl.knows("--subresource"), "kubectl is older than 1.24") {
        return Ok(());
    }
    let debug = ["debug", "patched-testnode", "--image", BUSYBOX_IMAGE];
    let options = ["--target=main", "--container=theirs", "--profile=general"];
    let command = ["--", "sh", "-c", "ps; echo done"];
    let words = [debug.as_slice(), &options, &command].concat();
    let output = kubectl.run(&words);
    assert_eq!(output.code, 0, "{output:?}");
    let log = node.wait_log("patched", "theirs", "done")?;
    assert!(log.contains("sleep 4242"), "{log}");
    let described = kubectl.stdout(&["describe", "pod", "patched-testnode"]);
    assert!(described.contains("Ephemeral Containers:"), "{described}");
    Ok(())
}
