//! The whole lifecycle of a pod on a real runtime: every kind of container, hook and probe,
//! restarts, OOM kills, and requests of operators. Processes, sockets and limits are real.

#![allow(
    clippy::unwrap_used,
    reason = "the location of a failure says which check failed"
)]

#[path = "../outside/outside.rs"]
mod outside;

mod delete;
mod ephemeral;
mod gates;
mod grpc_server;
mod hooks;
mod killed_agent;
mod network_probes;
mod node_shutdown;
mod notes;
mod oom;
mod post_start;
mod probes;
mod reboot;
mod restart;
mod restart_all;
mod restart_rules;
mod sandbox_killed;
mod sidecars;
mod sockets;
mod why;

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use rubelet_testbed::Node;
use rubelet_testbed::command::stdout_of;
use rubelet_testbed::node::TIMEOUT;
use serde_json::Value;

/// Waits until a condition is met.
fn wait(node: &Node, what: &str, mut wanted: impl FnMut() -> Result<bool>) -> Result<()> {
    node.agent()
        .wait_for(what, TIMEOUT, |_| Ok(wanted()?.then_some(())))
}

/// The id of a pod's only sandbox, which must be ready, and the pod's address.
fn place(node: &Node, pod: &str) -> Result<(String, Value)> {
    let sandboxes = node.sandboxes(pod)?;
    let [sandbox] = sandboxes.as_slice() else {
        anyhow::bail!("pod {pod} has not one sandbox: {sandboxes:#?}");
    };
    assert!(sandbox.ready, "the sandbox of pod {pod} is not ready");
    let shown = node.pod(pod)?.unwrap_or_default();
    let address = shown["status"]["podIP"].clone();
    assert!(address.is_string(), "pod {pod} has no address");
    Ok((sandbox.id.clone(), address))
}

/// Sends SIGKILL to a process of the test.
fn kill9(pid: u32) -> Result<()> {
    assert!(
        Path::new(&format!("/proc/{pid}")).exists(),
        "no process {pid}"
    );
    stdout_of(Command::new("kill").args(["-9", &pid.to_string()])).map(drop)
}
