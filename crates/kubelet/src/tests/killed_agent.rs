//! `kill -9` of the agent at every moment of a pod's life.

use std::time::Duration;

use rubelet_sim::{Behavior, EntryKind, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const POD: &str = "\
    initContainers: [{name: init, image: 'app:2'}], \
    containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}]";

/// A node with a pod that is about to start, and the UID of that pod.
fn node_with_pod() -> (Node, String) {
    let node = Node::new();
    let soon = Behavior::exits(Duration::from_millis(20), 0);
    node.sim.on_container("init", soon);
    let uid = node.apply("web", POD);
    (node, uid)
}

/// Waits until the pod runs, and checks that nothing was started twice.
async fn assert_started_once(node: &Node, uid: &str, when: &str) {
    node.until_running().await;
    sleep(seconds(30)).await;
    let oracle = node.sim.oracle();
    node.assert_never_twice(uid);
    for name in ["init", "a", "b"] {
        assert_eq!(
            oracle.starts(uid, name),
            1,
            "killed {when}: {name}\n{oracle}"
        );
        let status = node.container("web", name).unwrap();
        assert_eq!(status.restart_count, 0, "killed {when}: {name}\n{oracle}");
    }
    assert_eq!(node.sim.sandboxes(uid).len(), 1, "killed {when}\n{oracle}");
    assert_eq!(node.containers(uid).len(), 3, "killed {when}\n{oracle}");
}

#[tokio::test(start_paused = true)]
async fn killed_in_any_call_it_starts_everything_once() {
    for call in [
        "RunPodSandbox",
        "ImageStatus",
        "CreateContainer",
        "StartContainer",
    ] {
        for name in ["init", "a", "b"] {
            for after in [false, true] {
                let (mut node, uid) = node_with_pod();
                let subject = match call {
                    "RunPodSandbox" => Subject::pod(&uid),
                    "ImageStatus" => Subject::any(),
                    _ => Subject::container(&uid, name),
                };
                let hang = if after {
                    node.sim.hang_after_effect(call, subject)
                } else {
                    node.sim.hang(call, subject)
                };
                hang.reached().await;
                node.kill().await;
                hang.release();
                node.start();
                let when = format!("in {call} of {name}, after effect: {after}");
                assert_started_once(&node, &uid, &when).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_time_during_a_start_it_starts_everything_once() {
    // Each call takes 8 ms, half of them before its effect.
    for step in 0..200 {
        let (mut node, uid) = node_with_pod();
        node.sim.set_latency(Duration::from_millis(8));
        let at = Duration::from_millis(3) * step;
        sleep(at).await;
        node.restart().await;
        assert_started_once(&node, &uid, &format!("at {at:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_completed_after_the_death_of_their_caller_do_no_harm() {
    for step in 0..200 {
        let (mut node, uid) = node_with_pod();
        node.wire.finish_abandoned_calls();
        node.sim.set_latency(Duration::from_millis(8));
        let at = Duration::from_millis(3) * step;
        sleep(at).await;
        node.restart().await;
        node.until_running().await;
        sleep(seconds(30)).await;
        node.assert_never_twice(&uid);
        let oracle = node.sim.oracle();
        for name in ["init", "a", "b"] {
            assert_eq!(
                oracle.starts(&uid, name),
                1,
                "killed at {at:?}: {name}\n{oracle}"
            );
        }
    }
}

/// A node with a pod that is about to start, on a runtime where a start fails if its caller goes
/// away.
fn node_that_interrupts_starts(policy: &str) -> (Node, String) {
    let node = Node::new();
    node.wire.interrupt_starts();
    for (image, behavior) in [
        ("app:1", Behavior::runs()),
        ("app:2", Behavior::exits(Duration::from_millis(20), 0)),
    ] {
        let wire = node.wire.clone();
        node.sim.on_image_with(image, move |start| {
            if wire.was_interrupted(&start.instance.id) {
                Behavior::does_not_start("failed to create shim task: context canceled")
            } else {
                behavior.clone()
            }
        });
    }
    let uid = node.apply("web", &format!("restartPolicy: {policy}, {POD}"));
    node.sim.set_latency(Duration::from_millis(8));
    let slow = Duration::from_millis(40);
    node.sim.set_latency_of("StartContainer", slow);
    (node, uid)
}

/// Number of container starts that failed.
fn failed_starts(node: &Node) -> usize {
    let oracle = node.sim.oracle();
    let failed = |what: &EntryKind| matches!(what, EntryKind::ContainerNotStarted(_));
    let entries = oracle.entries().iter();
    entries.filter(|entry| failed(&entry.what)).count()
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_start_counts_neither_as_restart_nor_as_failure() {
    let mut interrupted = 0;
    for policy in ["Always", "Never"] {
        for step in 0..150 {
            let (mut node, uid) = node_that_interrupts_starts(policy);
            let at = Duration::from_millis(3) * step;
            sleep(at).await;
            node.restart().await;
            assert_started_once(&node, &uid, &format!("at {at:?}, {policy}")).await;
            interrupted += failed_starts(&node);
        }
    }
    assert!(
        interrupted >= 20,
        "only {interrupted} starts were interrupted"
    );
}

#[tokio::test(start_paused = true)]
async fn a_graceful_stop_of_the_agent_interrupts_no_start() {
    for step in 0..150 {
        let (mut node, uid) = node_that_interrupts_starts("Always");
        let at = Duration::from_millis(3) * step;
        sleep(at).await;
        node.stop().await;
        node.start();
        assert_started_once(&node, &uid, &format!("at {at:?}")).await;
        assert_eq!(failed_starts(&node), 0, "stopped at {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn killed_repeatedly_it_still_starts_everything_once() {
    for pace in [5_u64, 7, 11, 13, 17, 23, 31] {
        let (mut node, uid) = node_with_pod();
        node.sim.set_latency(Duration::from_millis(2));
        for round in 0..40 {
            sleep(Duration::from_millis(pace * (round % 5 + 1))).await;
            node.restart().await;
        }
        assert_started_once(&node, &uid, &format!("every {pace} ms")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn ten_running_pods_are_adopted_as_they_are() {
    let mut node = Node::new();
    for number in 0..10 {
        node.apply(&format!("web-{number}"), POD);
    }
    node.sim
        .on_container("init", Behavior::exits(seconds(1), 0));
    node.until_running().await;
    sleep(seconds(5)).await;
    let before: Vec<_> = statuses(&node);
    let mark = node.sim.oracle().mark();
    for _ in 0..20 {
        node.restart().await;
        node.until_running().await;
        sleep(Duration::from_millis(700)).await;
    }
    assert_eq!(statuses(&node), before);
    let reading = [
        "Status",
        "Version",
        "RuntimeConfig",
        "ListPodSandbox",
        "ListContainers",
    ];
    for call in node.sim.oracle().calls_since(mark) {
        let name = call.call;
        assert!(
            reading.contains(&name) || name.ends_with("Status"),
            "{call:?}"
        );
    }
}

fn statuses(node: &Node) -> Vec<rubelet_api::status::PodStatus> {
    (0..10)
        .map(|number| node.pod(&format!("web-{number}")).unwrap().status.clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_time_during_a_removal_it_removes_everything() {
    for step in 0..120 {
        let (mut node, uid) = node_with_pod();
        node.until_running().await;
        node.sim.set_latency(Duration::from_millis(8));
        node.remove_manifest("web");
        let at = Duration::from_millis(3) * step;
        sleep(at).await;
        node.restart().await;
        node.until("nothing is left", |node| node.is_gone(&uid))
            .await;
        sleep(seconds(5)).await;
        assert!(node.is_gone(&uid), "killed at {at:?}");
        assert!(!node.record("web").exists(), "killed at {at:?}");
        assert_eq!(node.sim.oracle().starts(&uid, "a"), 1, "killed at {at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn killed_during_a_replacement_it_ends_with_the_new_definition() {
    for step in 0..120 {
        let (mut node, uid) = node_with_pod();
        node.until_running().await;
        node.sim.set_latency(Duration::from_millis(8));
        node.apply(
            "web",
            &POD.replace("{name: b, image: 'app:1'}", "{name: b, image: 'app:2'}"),
        );
        let at = Duration::from_millis(3) * step;
        sleep(at).await;
        node.restart().await;
        let image = |node: &Node| {
            let status = node.container("web", "b");
            status.is_some_and(|status| status.image.ends_with(":2"))
        };
        node.until("b has its new image", image).await;
        node.until_running().await;
        sleep(seconds(30)).await;
        node.assert_never_twice(&uid);
        let oracle = node.sim.oracle();
        assert_eq!(oracle.starts(&uid, "a"), 1, "killed at {at:?}\n{oracle}");
        assert_eq!(oracle.starts(&uid, "b"), 2, "killed at {at:?}\n{oracle}");
    }
}
