//! Outages of the runtime.

use std::time::Duration;

use rubelet_cri::Timeouts;
use rubelet_image_pull::images::PullParallelism;
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

#[tokio::test(start_paused = true)]
async fn an_agent_waits_for_its_runtime_and_then_starts_the_pods() {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.set_down(true);
    let uid = node.apply("web", APP);
    node.start();
    sleep(seconds(120)).await;
    let problem = node.agent().runtime_state.borrow().problem.clone();
    assert!(problem.unwrap().starts_with("container runtime is down: "));
    let tries = node.calls("Status");
    assert!((25..=40).contains(&tries), "{tries} tries in two minutes");

    node.sim.set_down(false);
    let took = node.until_running().await;
    assert!(took <= seconds(6), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn pods_keep_running_while_the_runtime_is_down() {
    let mut node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let id = node.sim.running(&uid, "app");
    for _ in 0..3 {
        node.sim.set_down(true);
        sleep(seconds(100)).await;
        node.restart().await;
        sleep(seconds(100)).await;
        node.sim.set_down(false);
        sleep(seconds(20)).await;
        assert!(node.is_running("web"));
    }
    assert_eq!(node.sim.running(&uid, "app"), id);
    assert_eq!(node.container("web", "app").unwrap().restart_count, 0);
    assert_eq!(
        node.calls("StopContainer") + node.calls("StopPodSandbox"),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn manifest_changes_during_an_outage_are_applied_afterwards() {
    let node = Node::new();
    let edited = node.apply("edited", APP);
    let removed = node.apply("removed", APP);
    let same = node.apply("same", APP);
    node.until_running().await;
    node.sim.set_down(true);
    sleep(seconds(10)).await;
    for image in ["app:2", "app:1", "app:2"] {
        node.apply(
            "edited",
            &format!("containers: [{{name: app, image: '{image}'}}]"),
        );
        sleep(seconds(10)).await;
    }
    node.remove_manifest("removed");
    let added = node.apply("added", APP);
    sleep(seconds(30)).await;
    node.sim.set_down(false);
    let took = node
        .until("all is applied", |node| {
            node.is_gone(&removed) && node.is_running("added")
        })
        .await;
    assert!(took <= seconds(8), "{took:?}");
    node.until_running().await;
    let oracle = node.sim.oracle();
    assert_eq!(oracle.starts(&edited, "app"), 2);
    assert_eq!(oracle.starts(&same, "app"), 1);
    assert_eq!(oracle.starts(&added, "app"), 1);
    assert!(
        node.container("edited", "app")
            .unwrap()
            .image
            .ends_with("app:2")
    );
    for uid in [&edited, &removed, &same, &added] {
        node.assert_never_twice(uid);
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_that_exited_during_an_outage_restarts_after_it() {
    for away in [0, 1, 7, 40, 200] {
        let node = Node::new();
        let uid = node.apply("web", APP);
        node.until_running().await;
        sleep(seconds(3)).await;
        node.sim.set_down(true);
        sleep(seconds(away)).await;
        node.kill_container(&uid, "app", 9);
        sleep(seconds(away)).await;
        node.sim.set_down(false);
        let took = node
            .until("a restart", |node| {
                node.sim.oracle().starts(&uid, "app") == 2
            })
            .await;
        assert!(took <= seconds(6), "away for {away} s: {took:?}");
        let last = node.container("web", "app").unwrap().last_state;
        assert!(last.is_none_or(|end| end.exit_code == 9));
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_inspected_as_soon_as_the_runtime_responds_again() {
    for away in [10, 33, 61, 100, 137] {
        let node = Node::new();
        let uid = node.apply("web", APP);
        node.until_running().await;
        node.sim.set_down(true);
        sleep(seconds(away)).await;
        node.kill_container(&uid, "app", 9);
        node.sim.set_down(false);
        let ready = |node: &Node| node.agent().runtime_state.borrow().is_ready();
        node.until("the outage is noticed", |node| !ready(node))
            .await;
        node.until("the runtime is ready", ready).await;
        let again = |node: &Node| node.sim.oracle().starts(&uid, "app") == 2;
        let took = node.until("a restart", again).await;
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn frequent_runtime_restarts_create_no_pod_twice() {
    let node = Node::new();
    node.sim.set_latency(Duration::from_millis(6));
    node.sim
        .on_container("init", Behavior::exits(Duration::from_millis(20), 0));
    let spec = "initContainers: [{name: init, image: 'app:2'}], \
                containers: [{name: app, image: 'app:1'}]";
    let uids: Vec<_> = (0..5)
        .map(|number| node.apply(&format!("web-{number}"), spec))
        .collect();
    for round in 0..60 {
        sleep(Duration::from_millis(10 + round * 7)).await;
        node.sim.restart();
    }
    node.until_running().await;
    sleep(seconds(30)).await;
    for uid in &uids {
        node.assert_never_twice(uid);
        let oracle = node.sim.oracle();
        assert_eq!(oracle.starts(uid, "init"), 1, "{oracle}");
        assert_eq!(oracle.starts(uid, "app"), 1, "{oracle}");
        assert_eq!(node.sim.sandboxes(uid).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unready_network_holds_up_all_but_host_network_pods() {
    let node = Node::new();
    node.sim.set_ready(true, false);
    sleep(seconds(6)).await;
    node.apply("web", APP);
    let host = node.apply("host", &format!("hostNetwork: true, {APP}"));
    node.until("the pod of the host network runs", |node| {
        node.is_running("host")
    })
    .await;
    sleep(seconds(60)).await;
    assert_eq!(node.calls("RunPodSandbox"), 1);
    let events = node.events("web");
    assert!(
        events
            .iter()
            .any(|event| event.starts_with("NetworkNotReady ")),
        "{events:?}"
    );
    node.sim.set_ready(true, true);
    let took = node.until_running().await;
    assert!(took <= seconds(16), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&host, "app"), 1);
}
