//! The sandbox of a pod is killed, as by a crash of the machine.

use anyhow::{Context, Result};
use rubelet_cri::{RuntimeService, v1};
use rubelet_testbed::Node;
use rubelet_testbed::manifest::{shell, with};
use rubelet_testbed::runtime::Kind;
use rubelet_testbed::status::{ended, is_ready, restarts};
use serde_json::{Value, json};

use crate::notes::{Notes, note, noting, noting_script, sidecar};

/// Kills the process of a pod's only sandbox; returns the sandbox's id.
fn kill_sandbox(node: &Node, pod: &str) -> Result<String> {
    let (id, _) = crate::place(node, pod)?;
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: id.clone(),
        verbose: true,
    };
    let truth = node.truth();
    let status = truth.block_on(truth.client().pod_sandbox_status(request))?;
    let info: Value = serde_json::from_str(status.info.get("info").context("no details")?)?;
    let pid = info["pid"].as_u64().context("no process")?;
    crate::kill9(u32::try_from(pid)?)?;
    Ok(id)
}

fn has_process(node: &Node) -> bool {
    let has = node.runtime().kind() != Kind::Crio;
    rubelet_needs::applies(has, "a sandbox of CRI-O has no process")
}

#[test]
fn a_pod_with_a_killed_sandbox_is_started_again() -> Result<()> {
    let node = Node::shared()?;
    if !has_process(&node) {
        return Ok(());
    }
    let notes = Notes::new(&node, "sandbox-killed")?;
    let job = with(
        shell("job", &note("job")),
        &json!({ "restartPolicy": "OnFailure" }),
    );
    let spec = json!({
        "initContainers": [shell("prepare", &note("prepare")), sidecar(noting("proxy"))],
        "containers": [noting("main"), job],
    });
    node.apply(&notes.pod("sandbox-killed", spec))?;
    let seen = node.wait("sandbox-killed", "has done its job", |pod| {
        ended(pod, "job")["exitCode"] == 0
    })?;
    notes.wait(&node, "main begins")?;
    let uid = seen["metadata"]["uid"].clone();
    let old = kill_sandbox(&node, "sandbox-killed")?;
    let seen = node.wait("sandbox-killed", "runs in a new sandbox", |pod| {
        ["main", "proxy"]
            .iter()
            .all(|name| restarts(pod, name) == 1)
            && pod["status"]["phase"] == "Running"
    })?;
    assert_eq!(seen["metadata"]["uid"], uid);
    notes.wait_count(&node, "main begins", 2)?;
    let newest = node.sandboxes("sandbox-killed")?.remove(0);
    assert_ne!(newest.id, old);
    assert_eq!((newest.attempt, newest.ready), (1, true));
    let lines = notes.lines();
    let from = lines.iter().rposition(|line| line == "prepare").unwrap();
    assert!(from > 0, "init containers run again: {lines:#?}");
    assert_eq!(notes.count("prepare"), 2, "{lines:#?}");
    assert_eq!(
        lines[from..],
        ["prepare", "proxy begins", "main begins"],
        "in order, and the job is not done twice"
    );
    assert_eq!(ended(&seen, "job")["exitCode"], 0);
    assert_eq!(restarts(&seen, "job"), 0);
    node.wait_event("sandbox-killed", "SandboxChanged", "Pod sandbox changed")?;
    Ok(())
}

#[test]
fn a_pod_that_is_not_restarted_ends_with_its_sandbox() -> Result<()> {
    let node = Node::shared()?;
    if !has_process(&node) {
        return Ok(());
    }
    let notes = Notes::new(&node, "never-again")?;
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [shell("prepare", &note("prepare"))],
        "containers": [shell("main", &noting_script("main", ":", 6))],
    });
    node.apply(&notes.pod("never-again", spec))?;
    node.wait("never-again", "is ready", is_ready)?;
    notes.wait(&node, "main begins")?;
    kill_sandbox(&node, "never-again")?;
    let seen = node.wait_end("never-again")?;
    assert_eq!(seen["status"]["phase"], "Failed");
    assert_eq!(restarts(&seen, "main"), 0);
    match node.runtime().kind() {
        Kind::Containerd | Kind::Crio => {
            assert_eq!(ended(&seen, "main")["exitCode"], 6, "it could end in order");
            assert_eq!(notes.lines(), ["prepare", "main begins", "main ends"]);
        }
        // The killed process is the shim, without which exit codes of containers are unknown.
        Kind::Embedded => {
            assert_eq!(ended(&seen, "main")["exitCode"], 255);
            assert_eq!(notes.lines(), ["prepare", "main begins"]);
        }
    }
    assert_eq!(node.sandboxes("never-again")?.len(), 1, "no second sandbox");
    Ok(())
}
