//! Calls that hang for one pod do not delay the others.

use std::time::Duration;

use rubelet_cri::Timeouts;
use rubelet_image_pull::images::PullParallelism;
use rubelet_sim::{Behavior, Pull, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// Kills the containers of these pods, one after the other, and checks that each restarts promptly.
async fn assert_prompt_restarts(node: &Node, uids: &[String], what: &str) {
    for uid in uids {
        let before = node.sim.oracle().starts(uid, "app");
        node.kill_container(uid, "app", 1);
        let again = |node: &Node| node.sim.oracle().starts(uid, "app") > before;
        let took = node.until("a restart beside a hanging pod", again).await;
        assert!(took <= Duration::from_millis(1200), "{what}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_whose_status_hangs_do_not_hold_up_the_others() {
    let node = Node::new();
    let good: Vec<_> = (0..3)
        .map(|number| node.apply(&format!("good-{number}"), APP))
        .collect();
    let bad: Vec<_> = (0..20)
        .map(|number| node.apply(&format!("bad-{number}"), APP))
        .collect();
    node.until_running().await;
    let mut hangs = Vec::new();
    for uid in &bad {
        hangs.push(
            node.sim
                .hang("ContainerStatus", Subject::container(uid, "app")),
        );
        // The exit causes an inspection.
        node.kill_container(uid, "app", 1);
    }
    sleep(seconds(5)).await;
    assert_prompt_restarts(&node, &good, "20 hang").await;
    let late = node.apply("late", APP);
    let took = node
        .until("a new pod runs", |node| node.is_running("late"))
        .await;
    assert!(took <= seconds(2), "{took:?}");
    drop(hangs);
    let took = node.until_running().await;
    assert!(took <= seconds(10), "{took:?}");
    for uid in good.iter().chain(&bad).chain([&late]) {
        node.assert_never_twice(uid);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_pod_that_hang_do_not_hold_up_the_others() {
    for call in [
        "RunPodSandbox",
        "CreateContainer",
        "StartContainer",
        "StopContainer",
        "StopPodSandbox",
        "RemoveContainer",
        "RemovePodSandbox",
    ] {
        let node = Node::new();
        let good: Vec<_> = (0..3)
            .map(|number| node.apply(&format!("good-{number}"), APP))
            .collect();
        node.until_running().await;
        let mut hangs = Vec::new();
        for number in 0..12 {
            let name = format!("bad-{number}");
            let uid = node.apply(&name, APP);
            if call.starts_with("St") && call != "StartContainer" || call.starts_with("Rem") {
                node.until_running().await;
                node.remove_manifest(&name);
            }
            hangs.push(node.sim.hang(call, Subject::pod(&uid)));
        }
        let all_hang = |_: &Node| hangs.iter().all(|hang| hang.held() > 0);
        let took = node.until(&format!("each {call} hangs"), all_hang).await;
        assert!(took <= seconds(30), "{call}: {took:?}");
        sleep(seconds(3)).await;
        assert_prompt_restarts(&node, &good, call).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_status_call_times_out_and_the_pod_continues() {
    let timeouts = Timeouts {
        request: seconds(10),
    };
    let mut node = Node::stopped(PullParallelism::Unlimited, timeouts);
    node.start();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let hang = node.sim.hang("ContainerStatus", Subject::pod(&uid));
    node.kill_container(&uid, "app", 1);
    sleep(seconds(60)).await;
    assert_eq!(
        node.sim.oracle().starts(&uid, "app"),
        1,
        "nothing is known of the pod"
    );
    hang.release();
    let took = node.until_running().await;
    assert!(took <= seconds(7), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_the_image_ends_the_wait_for_a_pull_that_hangs() {
    let node = Node::new();
    node.sim.on_pull("big:1", Pull::hangs());
    let uid = node.apply("web", "containers: [{name: app, image: 'big:1'}]");
    node.until("the pull hangs", |node| node.calls("PullImage") == 1)
        .await;
    sleep(seconds(600)).await;
    node.apply("web", APP);
    let took = node.until_running().await;
    assert!(took <= seconds(2), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert_eq!(node.sim.sandboxes(&uid).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_pull_or_start_hangs_can_be_removed() {
    for call in [
        "PullImage",
        "CreateContainer",
        "StartContainer",
        "RunPodSandbox",
    ] {
        let node = Node::new();
        node.sim.on_pull("big:1", Pull::succeeds());
        let hang = node.sim.hang(call, Subject::any());
        let uid = node.apply("web", "containers: [{name: app, image: 'big:1'}]");
        hang.reached().await;
        sleep(seconds(3)).await;
        node.remove_manifest("web");
        let took = node.until("the end", |node| node.is_gone(&uid)).await;
        assert!(took <= seconds(3), "{call}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retried_start_that_hangs_does_not_hold_up_the_removal() {
    let mut node = Node::new();
    let uid = node.apply("web", APP);
    let hang = node.sim.hang("StartContainer", Subject::any());
    hang.reached().await;
    // The next agent finds the container created, and tries to start it.
    node.restart().await;
    sleep(seconds(2)).await;
    assert_eq!(hang.held(), 1);
    node.remove_manifest("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took <= seconds(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hung_serial_pull_does_not_hold_up_present_images() {
    let mut node = Node::stopped(PullParallelism::AtMost(1), Timeouts::default());
    node.start();
    node.sim.on_pull("big:1", Pull::hangs());
    node.sim.on_pull("small:1", Pull::succeeds());
    node.apply("slow", "containers: [{name: app, image: 'big:1'}]");
    node.until("the pull hangs", |node| node.calls("PullImage") == 1)
        .await;
    node.apply("quick", APP);
    let took = node
        .until("the other pod runs", |node| node.is_running("quick"))
        .await;
    assert!(took <= seconds(2), "{took:?}");

    node.apply("queued", "containers: [{name: app, image: 'small:1'}]");
    sleep(seconds(60)).await;
    assert_eq!(node.calls("PullImage"), 1, "one pull at a time");
    // When the pod of the hung pull is removed, the next pull begins.
    node.remove_manifest("slow");
    let took = node
        .until("the queued pod runs", |node| node.is_running("queued"))
        .await;
    assert!(took <= seconds(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn slow_termination_of_one_pod_does_not_hold_up_another() {
    let node = Node::new();
    node.sim
        .on_container("deaf", Behavior::runs().ignoring_term());
    let spec = "terminationGracePeriodSeconds: 100, containers: [{name: deaf, image: 'app:1'}]";
    node.apply("slow", spec);
    let quick = node.apply("quick", APP);
    node.until_running().await;
    node.remove_manifest("slow");
    node.remove_manifest("quick");
    let took = node
        .until("the quick one is gone", |node| node.is_gone(&quick))
        .await;
    assert!(took <= seconds(1), "{took:?}");
}
