//! Resources that one pod holds and another one needs: host ports, and whatever makes the runtime
//! refuse a sandbox.

use std::time::Duration;

use rubelet_sim::{Behavior, Fault};
use tokio::time::sleep;

use super::node::{Node, seconds};

const SPEC: &str = "terminationGracePeriodSeconds: 20, containers: [{name: app, image: 'app:1', \
                    ports: [{containerPort: 80, hostPort: 8080}]}]";

#[tokio::test(start_paused = true)]
async fn a_pod_starts_as_soon_as_its_host_port_is_released() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    node.apply("old", SPEC);
    node.until_running().await;
    // A port that the pod does not need.
    node.apply("third", &SPEC.replace("8080", "8082").replace("20", "1"));
    node.until_running().await;
    node.remove_manifest("old");
    let uid = node.apply("new", SPEC);
    sleep(seconds(5)).await;
    node.remove_manifest("third");
    sleep(seconds(10)).await;
    assert!(node.sim.sandboxes(&uid).is_empty());
    let events = node.events("new");
    let reported = events.iter().filter(|event| event.contains("HostPortHeld"));
    let reported: Vec<_> = reported.collect();
    assert_eq!(reported.len(), 1, "{events:#?}");
    let words = "host port 8080/TCP is in use by pod default/old-";
    assert!(reported[0].contains(words), "{}", reported[0]);
    let stopped = node.calls("StopPodSandbox");
    let released = |node: &Node| node.calls("StopPodSandbox") > stopped;
    node.until("the port is released", released).await;
    let runs = |node: &Node| node.is_running("new");
    let took = node.until("the new pod runs", runs).await;
    assert!(took <= Duration::from_millis(50), "{took:?}");
    let events = node.events("new");
    assert!(
        !events.iter().any(|event| event.contains("Failed")),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_keeps_its_host_port_across_agent_restarts() {
    let mut node = Node::new();
    node.apply("old", SPEC);
    node.until_running().await;
    node.restart().await;
    sleep(seconds(5)).await;
    let uid = node.apply("new", SPEC);
    sleep(seconds(60)).await;
    assert!(node.sim.sandboxes(&uid).is_empty());
    // A pod with another port starts.
    node.apply("other", &SPEC.replace("8080", "8081"));
    node.until("the other pod runs", |node| node.is_running("other"))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_sandbox_is_recreated_keeps_its_host_port() {
    let node = Node::new();
    let old = node.apply("old", SPEC);
    node.until_running().await;
    let uid = node.apply("new", SPEC);
    let reported = |node: &Node| {
        let events = node.events("new");
        events.iter().any(|event| event.contains("HostPortHeld"))
    };
    node.until("the second pod waits", reported).await;
    node.sim.kill_sandbox(&node.sim.sandboxes(&old)[0]);
    sleep(seconds(30)).await;
    node.until("the first one runs again", |node| node.is_running("old"))
        .await;
    assert!(node.sim.sandboxes(&uid).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failed_sandbox_is_retried_as_soon_as_another_pod_has_ended() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs());
    node.apply("old", "containers: [{name: app, image: 'app:1'}]");
    node.until_running().await;
    node.sim.inject(Fault::of("RunPodSandbox").always());
    node.apply("new", "containers: [{name: app, image: 'app:1'}]");
    // By now the back-off between two attempts is ten seconds.
    sleep(seconds(45)).await;
    let tried = node.calls("RunPodSandbox");
    let again = |node: &Node| node.calls("RunPodSandbox") > tried;
    node.until("it is tried again", again).await;
    node.sim.clear_faults();
    sleep(seconds(1)).await;
    let stopped = node.calls("StopPodSandbox");
    node.remove_manifest("old");
    let released = |node: &Node| node.calls("StopPodSandbox") > stopped;
    node.until("the old pod is stopped", released).await;
    let runs = |node: &Node| node.is_running("new");
    let took = node.until("the new pod runs", runs).await;
    assert!(took <= Duration::from_millis(50), "{took:?}");
}
