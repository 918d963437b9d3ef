//! Exits that the kernel reports before the runtime does.

use rubelet_cri::{Code, CriErrorKind, Timeouts};
use rubelet_image_pull::images::PullParallelism;
use rubelet_pleg::LifecycleEvent;
use rubelet_sim::{EntryKind, Pull, Subject};
use tokio::time::{Instant, sleep};

use super::queries::millis;
use crate::tests::node::{Node, seconds};

/// A pod whose container may restart without back-off after a while.
const POD: &str = "restartPolicy: Always, containers: [{name: app, image: 'app:1'}]";

/// A node that watches processes, with a pod that has run for a minute; also the pod's UID and its
/// container.
async fn idle_node(spec: &str) -> (Node, String, String) {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.kernel = true;
    node.sim.on_pull("app:1", Pull::succeeds());
    node.start();
    let uid = node.apply("web", spec);
    node.until_running().await;
    sleep(seconds(60)).await;
    let id = node.sim.running(&uid, "app").expect("it runs");
    (node, uid, id)
}

/// When the first container of this attempt was created or started, since the simulation started.
fn when(node: &Node, attempt: u32, started: bool) -> Option<std::time::Duration> {
    let oracle = node.sim.oracle();
    oracle.entries().iter().find_map(|entry| match &entry.what {
        EntryKind::ContainerCreated(of) if !started && of.attempt == attempt => Some(entry.at),
        EntryKind::ContainerStarted(of) if started && of.attempt == attempt => Some(entry.at),
        _ => None,
    })
}

fn kernel_caused(node: &Node) -> usize {
    let events = node.lifecycle();
    let of_kernel = |event: &&LifecycleEvent| event.cause.to_string() == "kernel";
    events.iter().filter(of_kernel).count()
}

#[tokio::test(start_paused = true)]
async fn a_precreated_container_starts_after_the_exit_report() {
    let (node, uid, id) = idle_node(POD).await;
    let before = node.uptime();
    node.sim.exit_unnoticed(&id, None);
    sleep(millis(40)).await;
    let made = when(&node, 1, false).expect("it was precreated");
    assert!(made - before <= millis(5), "{:?}", made - before);
    assert_eq!(when(&node, 1, true), None, "it is not started");
    assert_eq!(
        node.state("web", "app"),
        "Running",
        "as the runtime reports"
    );
    assert_eq!(kernel_caused(&node), 1);
    let reported = node.uptime();
    node.sim.kill_container(&id, 137, "");
    node.until("the next instance runs", |node| {
        when(node, 1, true).is_some()
    })
    .await;
    let started = when(&node, 1, true).expect("it runs");
    assert!(started - reported <= millis(5), "{:?}", started - reported);
    sleep(seconds(5)).await;
    let status = node.container("web", "app").expect("it is there");
    assert_eq!(status.restart_count, 1);
    assert_eq!(node.calls("CreateContainer"), 2);
    node.assert_never_twice(&uid);

    // That one exits too early for a restart without back-off: nothing is precreated.
    let second = node.sim.running(&uid, "app").expect("it runs");
    sleep(seconds(30)).await;
    node.sim.exit_unnoticed(&second, None);
    sleep(millis(40)).await;
    node.sim.kill_container(&second, 137, "");
    sleep(seconds(2)).await;
    assert_eq!(node.calls("CreateContainer"), 2, "it waits");
    node.until("the third", |node| when(node, 2, true).is_some())
        .await;
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn an_exit_code_of_the_kernel_is_published_early() {
    let (node, uid, id) = idle_node(POD).await;
    node.sim.exit_unnoticed(&id, Some(3));
    node.until("the end is published", |node| {
        node.state("web", "app") == "Terminated Error 3"
    })
    .await;
    let status = node.container("web", "app").expect("it is there");
    assert!(!status.ready);
    let reported = node.uptime();
    sleep(millis(40)).await;
    assert_eq!(
        when(&node, 1, true),
        None,
        "the next instance waits for the runtime"
    );
    node.sim.kill_container(&id, 3, "");
    node.until("the next instance runs", |node| {
        when(node, 1, true).is_some()
    })
    .await;
    let started = when(&node, 1, true).expect("it runs");
    assert!(started - reported <= millis(50), "{:?}", started - reported);
    sleep(seconds(5)).await;
    let status = node.container("web", "app").expect("it is there");
    assert_eq!(status.restart_count, 1);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn pids_are_queried_once_and_idle_pods_cost_no_calls() {
    let (node, _, _) = idle_node(POD).await;
    let mark = node.sim.oracle().mark();
    sleep(seconds(50)).await;
    let calls = node.sim.oracle().calls_since(mark);
    let reads = calls.iter().filter(|call| call.call == "ContainerStatus");
    assert_eq!(reads.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_exit_that_is_never_reported_raises_an_event_only() {
    let (node, uid, id) = idle_node(POD).await;
    node.sim.exit_unnoticed(&id, None);
    sleep(seconds(1)).await;
    assert_eq!(
        node.containers(&uid).len(),
        2,
        "the next instance is precreated"
    );
    sleep(seconds(11)).await;
    assert_eq!(node.containers(&uid).len(), 1, "and it is removed");
    assert_eq!(node.state("web", "app"), "Running");
    assert_eq!(
        node.container("web", "app")
            .expect("it is there")
            .restart_count,
        0
    );
    let reported = |node: &Node| {
        let events = node.events("web");
        let lost = events
            .iter()
            .filter(|event| event.starts_with("ContainerEndNotTold "));
        lost.count()
    };
    assert_eq!(reported(&node), 1, "{:?}", node.events("web"));
    sleep(seconds(600)).await;
    assert_eq!(reported(&node), 1, "once");
    assert_eq!(node.containers(&uid).len(), 1);
    // The runtime reports the exit after all: an ordinary restart.
    node.sim.kill_container(&id, 137, "");
    node.until("it starts again", |node| when(node, 1, true).is_some())
        .await;
    sleep(seconds(5)).await;
    assert_eq!(
        node.container("web", "app")
            .expect("it is there")
            .restart_count,
        1
    );
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn an_exit_whose_event_is_lost_is_still_noticed() {
    let (node, uid, id) = idle_node(POD).await;
    node.sim.mute_events();
    node.sim.exit_unnoticed(&id, None);
    sleep(millis(40)).await;
    node.sim.kill_container(&id, 137, "");
    let running = |node: &Node| when(node, 1, true).is_some();
    let took = node.until("it starts again", running).await;
    assert!(took <= millis(100), "{took:?}");
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_may_not_restart_is_not_precreated() {
    for policy in ["OnFailure", "Never"] {
        let spec = POD.replace("Always", policy);
        let (node, _, id) = idle_node(&spec).await;
        node.sim.exit_unnoticed(&id, None);
        sleep(millis(40)).await;
        assert_eq!(node.calls("CreateContainer"), 1, "{policy}");
        node.sim.kill_container(&id, 0, "");
        node.until("the end", |node| {
            node.state("web", "app").starts_with("Terminated")
        })
        .await;
        assert_eq!(node.calls("CreateContainer"), 1, "{policy}");
    }
    let pulls = POD.replace("'app:1'", "'app:1', imagePullPolicy: Always");
    let (node, _, id) = idle_node(&pulls).await;
    node.sim.exit_unnoticed(&id, None);
    sleep(millis(40)).await;
    assert_eq!(node.calls("CreateContainer"), 1);
    assert_eq!(node.calls("PullImage"), 1);
    node.sim.kill_container(&id, 137, "");
    node.until("it starts again", |node| when(node, 1, true).is_some())
        .await;
    assert_eq!(node.calls("PullImage"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_agent_killed_between_exit_and_report_leaves_one_instance() {
    for reported in [false, true] {
        for after in [0, 2, 6, 12, 20] {
            let (mut node, uid, id) = idle_node(POD).await;
            node.sim.set_latency(millis(4));
            node.sim.exit_unnoticed(&id, None);
            sleep(millis(after)).await;
            if reported {
                node.sim.kill_container(&id, 137, "");
                sleep(millis(after)).await;
            }
            node.restart().await;
            if !reported {
                sleep(millis(50)).await;
                node.sim.kill_container(&id, 137, "");
            }
            node.until("it starts again", |node| {
                node.sim.running(&uid, "app").is_some()
            })
            .await;
            sleep(seconds(30)).await;
            let what = format!(
                "reported: {reported}, after {after} ms\n{}",
                node.failure_report()
            );
            assert_eq!(node.sim.oracle().starts(&uid, "app"), 2, "{what}");
            let status = node.container("web", "app").expect("it is there");
            assert_eq!(status.restart_count, 1, "{what}");
            assert_eq!(node.containers(&uid).len(), 2, "{what}");
            node.assert_never_twice(&uid);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_precreation_does_not_delay_the_restart() {
    let (node, uid, id) = idle_node(POD).await;
    let kind = CriErrorKind::Other(Code::Unknown);
    node.sim.fail_next("CreateContainer", kind, false);
    node.sim.exit_unnoticed(&id, None);
    sleep(millis(40)).await;
    let reported = Instant::now();
    node.sim.kill_container(&id, 137, "");
    node.until("it starts again", |node| when(node, 1, true).is_some())
        .await;
    assert!(reported.elapsed() <= millis(10), "{:?}", reported.elapsed());
    let events = node.events("web");
    assert!(
        !events.iter().any(|event| event.starts_with("Failed")),
        "{events:?}"
    );
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn a_pod_removed_during_precreation_leaves_nothing() {
    for hangs in [false, true] {
        let (node, uid, id) = idle_node(POD).await;
        let hang = hangs.then(|| {
            node.sim
                .hang_after_effect("CreateContainer", Subject::container(&uid, "app"))
        });
        node.sim.exit_unnoticed(&id, None);
        sleep(millis(20)).await;
        node.remove_manifest("web");
        sleep(millis(20)).await;
        node.sim.kill_container(&id, 137, "");
        drop(hang);
        node.until("the pod is gone", |node| node.is_gone(&uid))
            .await;
        assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_exit_that_the_runtime_reports_first_restarts_once() {
    let (node, uid, id) = idle_node(POD).await;
    node.sim.kill_container(&id, 1, "");
    node.until("it starts again", |node| when(node, 1, true).is_some())
        .await;
    sleep(seconds(5)).await;
    assert_eq!(node.calls("CreateContainer"), 2);
    assert_eq!(
        node.container("web", "app")
            .expect("it is there")
            .restart_count,
        1
    );
    node.assert_never_twice(&uid);
}
