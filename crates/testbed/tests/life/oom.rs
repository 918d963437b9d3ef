//! Containers that exceed their memory limit.

use std::{fs::OpenOptions, io::Write as _};

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{pod, shell, waiting, with};
use rubelet_testbed::status::{ended, ended_before, restarts, runs};
use serde_json::{Value, json};

/// A container with 16 MiB that runs this command a moment after its start: on some hosts
/// containerd receives OOM events only after the start.
fn limited(name: &str, command: &str) -> Value {
    with(
        shell(name, &format!("sleep 0.5; exec {command}")),
        &json!({ "resources": { "limits": { "memory": "16Mi" } } }),
    )
}

/// Accumulates its input, because it waits for the end of a line.
const GROWS: &str = "tail /dev/zero";
/// Fills a volume in memory.
const FILLS: &str = "dd if=/dev/zero of=/memory/file bs=1M count=64";

fn killed(end: &Value) {
    assert_eq!(end["reason"], "OOMKilled", "{end}");
    assert_eq!(end["exitCode"], 137, "{end}");
}

#[test]
fn an_oom_killed_container_is_reported_and_restarted() -> Result<()> {
    let node = Node::shared()?;
    // A process may say what it likes.
    if let Ok(mut log) = OpenOptions::new().write(true).open("/dev/kmsg") {
        log.write_all(b"<0>Out of memory: Killed process 1 (rubelet-test) total-vm:1kB")?;
    }
    let spec = json!({
        "restartPolicy": "OnFailure",
        "containers": [limited("grows", GROWS), waiting("other")],
    });
    node.apply(&pod("oom", &spec))?;
    let seen = node.wait("oom", "was started again", |pod| {
        restarts(pod, "grows") >= 1 && ended_before(pod, "grows")["reason"] == "OOMKilled"
    })?;
    killed(ended_before(&seen, "grows"));
    assert_eq!(seen["status"]["phase"], "Running");
    assert!(runs(&seen, "other"), "its neighbour goes on");
    assert_eq!(restarts(&seen, "other"), 0);
    let events = node.cli(&["get", "events"])?;
    assert!(
        !events.contains("SystemOOM"),
        "the machine has memory: {events}"
    );
    let why = node.cli(&["why", "pod/oom-testnode"])?;
    assert!(why.contains("ran out of memory"), "{why}");
    assert!(why.contains("exit code 137"), "{why}");
    Ok(())
}

#[test]
fn an_oom_kill_ends_a_pod_that_is_not_restarted() -> Result<()> {
    let node = Node::shared()?;
    let fills = with(
        limited("fills", FILLS),
        &json!({ "volumeMounts": [{ "name": "memory", "mountPath": "/memory" }] }),
    );
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [fills, limited("grows", GROWS)],
        "volumes": [{ "name": "memory", "emptyDir": { "medium": "Memory" } }],
    });
    node.apply(&pod("oom-never", &spec))?;
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [limited("grows", GROWS)],
        "containers": [waiting("main")],
    });
    node.apply(&pod("oom-init", &spec))?;
    let all = |pod: &Value| {
        ["fills", "grows"]
            .iter()
            .all(|name| ended(pod, name)["reason"] == "OOMKilled")
    };
    let seen = node.wait("oom-never", "was killed", all)?;
    for name in ["fills", "grows"] {
        killed(ended(&seen, name));
        assert_eq!(restarts(&seen, name), 0, "{name}");
    }
    assert_eq!(node.wait_end("oom-never")?["status"]["phase"], "Failed");
    let seen = node.wait("oom-init", "was killed", |pod| {
        ended(pod, "grows")["reason"] == "OOMKilled"
    })?;
    killed(ended(&seen, "grows"));
    assert_eq!(node.wait_end("oom-init")?["status"]["phase"], "Failed");
    assert_eq!(node.containers("oom-init")?.len(), 1, "main was never made");
    Ok(())
}
