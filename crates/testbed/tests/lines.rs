//! The agent on each line of containerd: one without events, one that sends each event to one
//! reader, and one that sends all events to all readers. Pods behave the same.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rubelet_testbed::containerd::{HostPorts, Line};
use rubelet_testbed::manifest::{pod, waiting};
use rubelet_testbed::status::{ended_before, is_ready, restarts};
use rubelet_testbed::{Containerd, Node, proc, wait};
use serde_json::{Value, json};

/// By this time PIDs are queried, some seconds after the last start.
const WATCHED_BY: Duration = Duration::from_secs(60);
/// The agent's lifecycle events (PLEG).
const LIFECYCLE_EVENTS: &str = "/apis/node.rubelet.dev/v1alpha1/podlifecycleevents";

#[test]
fn on_containerd_1_6_containers_are_replaced_and_removed() -> Result<()> {
    containers_are_replaced_and_removed(Line::V1_6)
}

#[test]
fn on_containerd_1_7_containers_are_replaced_and_removed() -> Result<()> {
    containers_are_replaced_and_removed(Line::V1_7)
}

#[test]
fn on_containerd_2_containers_are_replaced_and_removed() -> Result<()> {
    containers_are_replaced_and_removed(Line::V2)
}

fn containers_are_replaced_and_removed(line: Line) -> Result<()> {
    let containerd = Containerd::start_line(line, HostPorts::None)?;
    let node = Node::start_on(containerd, |builder| builder)?;
    for name in ["kept", "beside"] {
        node.apply(&pod(name, &json!({ "containers": [waiting("main")] })))?;
    }
    for name in ["kept", "beside"] {
        node.wait_ready(name)?;
    }
    let beside = node.running("beside", "main")?;

    let first = node.running("kept", "main")?;
    proc::kill9(node.truth().pid(&first.id)?)?;
    let seen = node.wait("kept", "was restarted", |pod| {
        restarts(pod, "main") == 1 && is_ready(pod)
    })?;
    assert_eq!(ended_before(&seen, "main")["exitCode"], 137);
    let second = node.running("kept", "main")?;
    assert_ne!(second.id, first.id);
    assert_eq!(second.sandbox, first.sandbox);
    assert_eq!(second.restart_count, Some(1));
    let told = lifecycle_event(&node, "ContainerDied", &first.id)?;
    assert_eq!(
        told["afterEventSeconds"].is_number(),
        line.has_events(),
        "an event of the runtime led to it, or the list did: {told}"
    );

    node.remove("kept")?;
    node.wait_gone("kept")?;
    assert_eq!(node.containers("kept")?, []);
    assert_eq!(node.sandboxes("kept")?, []);
    assert_eq!(node.containers("beside")?, [beside], "nothing else changed");
    Ok(())
}

#[test]
fn the_kernel_reports_an_exit_before_containerd_does() -> Result<()> {
    let containerd = Containerd::start_line(Line::V2, HostPorts::None)?;
    let node = Node::start_on(containerd, |builder| builder)?;
    node.apply(&pod("web", &json!({ "containers": [waiting("main")] })))?;
    node.wait_ready("web")?;
    let metrics = |node: &Node| Ok::<_, anyhow::Error>(node.agent().health("/metrics")?.text());
    wait::until("its process is watched", WATCHED_BY, || {
        let watched = metrics(&node)?.contains("\nrubelet_pleg_watched_processes 1\n");
        Ok(watched.then_some(()))
    })?;

    let first = node.running("web", "main")?;
    proc::kill9(node.truth().pid(&first.id)?)?;
    let seen = node.wait("web", "was restarted", |pod| {
        restarts(pod, "main") == 1 && is_ready(pod)
    })?;
    assert_eq!(ended_before(&seen, "main")["exitCode"], 137);
    let second = node.running("web", "main")?;
    assert_eq!(second.sandbox, first.sandbox);
    assert_eq!(second.restart_count, Some(1));
    assert_eq!(
        node.containers("web")?.len(),
        2,
        "each instance was made once"
    );
    let told = metrics(&node)?.contains("\nrubelet_pleg_process_ends_total 1\n");
    assert!(told, "{}", metrics(&node)?);
    lifecycle_event(&node, "ContainerDied", &first.id)?;
    Ok(())
}

/// The only lifecycle event of this type about this container.
fn lifecycle_event(node: &Node, kind: &str, id: &str) -> Result<Value> {
    let list = node.agent().get_json(LIFECYCLE_EVENTS)?;
    let events = list["items"].as_array().context("the list has no items")?;
    let about_it = |event: &&Value| event["type"] == kind && event["id"] == id;
    let found: Vec<&Value> = events.iter().filter(about_it).collect();
    ensure!(found.len() == 1, "{kind} of {id} was told {found:#?}");
    Ok(found[0].clone())
}
