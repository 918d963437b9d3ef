//! Calls that hang: one pod's trouble is not that of the others.

use std::time::Duration;

use rubelet_cri::Timeouts;
use rubelet_image_pull::images::PullParallelism;
use rubelet_sim::{Behavior, Pull, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// Lets the containers of these pods die, one after the other, and waits for their restarts.
async fn assert_quick(node: &Node, uids: &[String], what: &str) {
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
        .map(|number| node.want(&format!("good-{number}"), APP))
        .collect();
    let bad: Vec<_> = (0..20)
        .map(|number| node.want(&format!("bad-{number}"), APP))
        .collect();
    node.until_running().await;
    let mut hangs = Vec::new();
    for uid in &bad {
        hangs.push(
            node.sim
                .hang("ContainerStatus", Subject::container(uid, "app")),
        );
        // Something happens to it, so that it is looked at.
        node.kill_container(uid, "app", 1);
    }
    sleep(seconds(5)).await;
    assert_quick(&node, &good, "20 hang").await;
    let late = node.want("late", APP);
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
            .map(|number| node.want(&format!("good-{number}"), APP))
            .collect();
        node.until_running().await;
        let mut hangs = Vec::new();
        for number in 0..12 {
            let name = format!("bad-{number}");
            let uid = node.want(&name, APP);
            if call.starts_with("St") && call != "StartContainer" || call.starts_with("Rem") {
                node.until_running().await;
                node.unwant(&name);
            }
            hangs.push(node.sim.hang(call, Subject::pod(&uid)));
        }
        let all_hang = |_: &Node| hangs.iter().all(|hang| hang.held() > 0);
        let took = node.until(&format!("each {call} hangs"), all_hang).await;
        assert!(took <= seconds(30), "{call}: {took:?}");
        sleep(seconds(3)).await;
        assert_quick(&node, &good, call).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hung_status_ends_by_its_deadline_and_the_pod_goes_on() {
    let timeouts = Timeouts {
        request: seconds(10),
    };
    let mut node = Node::stopped(PullParallelism::Unlimited, timeouts);
    node.start();
    let uid = node.want("web", APP);
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
    let uid = node.want("web", "containers: [{name: app, image: 'big:1'}]");
    node.until("the pull hangs", |node| node.calls("PullImage") == 1)
        .await;
    sleep(seconds(600)).await;
    node.want("web", APP);
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
        let uid = node.want("web", "containers: [{name: app, image: 'big:1'}]");
        hang.reached().await;
        sleep(seconds(3)).await;
        node.unwant("web");
        let took = node.until("the end", |node| node.is_gone(&uid)).await;
        assert!(took <= seconds(3), "{call}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_repeated_and_hangs_does_not_hold_up_the_removal() {
    let mut node = Node::new();
    let uid = node.want("web", APP);
    let hang = node.sim.hang("StartContainer", Subject::any());
    hang.reached().await;
    // The next agent finds the container created, and tries to start it.
    node.restart().await;
    sleep(seconds(2)).await;
    assert_eq!(hang.held(), 1);
    node.unwant("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took <= seconds(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn with_serial_pulls_one_that_hangs_does_not_hold_up_images_that_are_there() {
    let mut node = Node::stopped(PullParallelism::AtMost(1), Timeouts::default());
    node.start();
    node.sim.on_pull("big:1", Pull::hangs());
    node.sim.on_pull("small:1", Pull::succeeds());
    node.want("slow", "containers: [{name: app, image: 'big:1'}]");
    node.until("the pull hangs", |node| node.calls("PullImage") == 1)
        .await;
    node.want("quick", APP);
    let took = node
        .until("the other pod runs", |node| node.is_running("quick"))
        .await;
    assert!(took <= seconds(2), "{took:?}");

    node.want("queued", "containers: [{name: app, image: 'small:1'}]");
    sleep(seconds(60)).await;
    assert_eq!(node.calls("PullImage"), 1, "one pull at a time");
    // When the hanging pull is not wanted any more, the next one begins.
    node.unwant("slow");
    let took = node
        .until("the queued pod runs", |node| node.is_running("queued"))
        .await;
    assert!(took <= seconds(3), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_end_of_one_pod_does_not_hold_up_another_removal() {
    let node = Node::new();
    node.sim
        .on_container("deaf", Behavior::runs().ignoring_term());
    let spec = "terminationGracePeriodSeconds: 100, containers: [{name: deaf, image: 'app:1'}]";
    node.want("slow", spec);
    let quick = node.want("quick", APP);
    node.until_running().await;
    node.unwant("slow");
    node.unwant("quick");
    let took = node
        .until("the quick one is gone", |node| node.is_gone(&quick))
        .await;
    assert!(took <= seconds(1), "{took:?}");
}
