//! Ends that the kernel tells before the runtime does.

use rubelet_cri::{Code, CriErrorKind, Timeouts};
use rubelet_image_pull::images::PullParallelism;
use rubelet_pleg::LifecycleEvent;
use rubelet_sim::{EntryKind, Pull, Subject};
use tokio::time::{Instant, sleep};

use super::queries::millis;
use crate::tests::node::{Node, seconds};

/// Containers that have run for long enough to start again at once.
const POD: &str = "restartPolicy: Always, containers: [{name: app, image: 'app:1'}]";

/// A node that listens to the kernel, and whose pod has rested; its UID and its container.
async fn node_at_rest(spec: &str) -> (Node, String, String) {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.kernel = true;
    node.sim.on_pull("app:1", Pull::succeeds());
    node.start();
    let uid = node.want("web", spec);
    node.until_running().await;
    sleep(seconds(60)).await;
    let id = node.sim.running(&uid, "app").expect("it runs");
    (node, uid, id)
}

/// When the first container of this attempt was created or started, since the start of the model.
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
async fn the_next_instance_is_there_before_the_runtime_tells_the_end_and_starts_after_it() {
    let (node, uid, id) = node_at_rest(POD).await;
    let before = node.uptime();
    node.sim.exit_unnoticed(&id, None);
    sleep(millis(40)).await;
    let made = when(&node, 1, false).expect("it was made ahead");
    assert!(made - before <= millis(5), "{:?}", made - before);
    assert_eq!(when(&node, 1, true), None, "it is not started");
    assert_eq!(node.state("web", "app"), "Running", "by the runtime's word");
    assert_eq!(kernel_caused(&node), 1);
    let told = node.uptime();
    node.sim.kill_container(&id, 137, "");
    node.until("the next instance runs", |node| {
        when(node, 1, true).is_some()
    })
    .await;
    let started = when(&node, 1, true).expect("it runs");
    assert!(started - told <= millis(5), "{:?}", started - told);
    sleep(seconds(5)).await;
    let status = node.container("web", "app").expect("it is there");
    assert_eq!(status.restart_count, 1);
    assert_eq!(node.calls("CreateContainer"), 2);
    node.assert_never_twice(&uid);

    // The end of that one comes too soon for another start: nothing is made ahead.
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
async fn an_exit_code_of_the_kernel_is_published_before_the_runtime_tells_the_end() {
    let (node, uid, id) = node_at_rest(POD).await;
    node.sim.exit_unnoticed(&id, Some(3));
    node.until("the end is published", |node| {
        node.state("web", "app") == "Terminated Error 3"
    })
    .await;
    let status = node.container("web", "app").expect("it is there");
    assert!(!status.ready);
    let told = node.uptime();
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
    assert!(started - told <= millis(50), "{:?}", started - told);
    sleep(seconds(5)).await;
    let status = node.container("web", "app").expect("it is there");
    assert_eq!(status.restart_count, 1);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn the_kernel_is_asked_once_for_each_container_and_a_pod_at_rest_costs_nothing() {
    let (node, _, _) = node_at_rest(POD).await;
    let mark = node.sim.oracle().mark();
    sleep(seconds(50)).await;
    let calls = node.sim.oracle().calls_since(mark);
    let reads = calls.iter().filter(|call| call.call == "ContainerStatus");
    assert_eq!(reads.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_the_runtime_never_tells_is_said_and_made_up_by_nobody() {
    let (node, uid, id) = node_at_rest(POD).await;
    node.sim.exit_unnoticed(&id, None);
    sleep(seconds(1)).await;
    assert_eq!(node.containers(&uid).len(), 2, "the next instance is ready");
    sleep(seconds(11)).await;
    assert_eq!(node.containers(&uid).len(), 1, "and it is removed");
    assert_eq!(node.state("web", "app"), "Running");
    assert_eq!(
        node.container("web", "app")
            .expect("it is there")
            .restart_count,
        0
    );
    let told = |node: &Node| {
        let events = node.events("web");
        let lost = events
            .iter()
            .filter(|event| event.starts_with("ContainerEndNotTold "));
        lost.count()
    };
    assert_eq!(told(&node), 1, "{:?}", node.events("web"));
    sleep(seconds(600)).await;
    assert_eq!(told(&node), 1, "once");
    assert_eq!(node.containers(&uid).len(), 1);
    // The runtime finds it after all: an ordinary restart.
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
async fn an_end_of_which_the_event_is_lost_is_noticed_all_the_same() {
    let (node, uid, id) = node_at_rest(POD).await;
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
async fn what_may_not_start_again_is_not_made_ahead() {
    for policy in ["OnFailure", "Never"] {
        let spec = POD.replace("Always", policy);
        let (node, _, id) = node_at_rest(&spec).await;
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
    let (node, _, id) = node_at_rest(&pulls).await;
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
async fn an_agent_that_is_killed_between_the_two_leaves_one_instance() {
    for told in [false, true] {
        for after in [0, 2, 6, 12, 20] {
            let (mut node, uid, id) = node_at_rest(POD).await;
            node.sim.set_latency(millis(4));
            node.sim.exit_unnoticed(&id, None);
            sleep(millis(after)).await;
            if told {
                node.sim.kill_container(&id, 137, "");
                sleep(millis(after)).await;
            }
            node.restart().await;
            if !told {
                sleep(millis(50)).await;
                node.sim.kill_container(&id, 137, "");
            }
            node.until("it starts again", |node| {
                node.sim.running(&uid, "app").is_some()
            })
            .await;
            sleep(seconds(30)).await;
            let what = format!("told: {told}, after {after} ms\n{}", node.account());
            assert_eq!(node.sim.oracle().starts(&uid, "app"), 2, "{what}");
            let status = node.container("web", "app").expect("it is there");
            assert_eq!(status.restart_count, 1, "{what}");
            assert_eq!(node.containers(&uid).len(), 2, "{what}");
            node.assert_never_twice(&uid);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_or_hangs_ahead_costs_no_more_than_without() {
    let (node, uid, id) = node_at_rest(POD).await;
    let kind = CriErrorKind::Other(Code::Unknown);
    node.sim.fail_next("CreateContainer", kind, false);
    node.sim.exit_unnoticed(&id, None);
    sleep(millis(40)).await;
    let told = Instant::now();
    node.sim.kill_container(&id, 137, "");
    node.until("it starts again", |node| when(node, 1, true).is_some())
        .await;
    assert!(told.elapsed() <= millis(10), "{:?}", told.elapsed());
    let events = node.events("web");
    assert!(
        !events.iter().any(|event| event.starts_with("Failed")),
        "{events:?}"
    );
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_removed_meanwhile_leaves_nothing() {
    for hangs in [false, true] {
        let (node, uid, id) = node_at_rest(POD).await;
        let hang = hangs.then(|| {
            node.sim
                .hang_after_effect("CreateContainer", Subject::container(&uid, "app"))
        });
        node.sim.exit_unnoticed(&id, None);
        sleep(millis(20)).await;
        node.unwant("web");
        sleep(millis(20)).await;
        node.sim.kill_container(&id, 137, "");
        drop(hang);
        node.until("the pod is gone", |node| node.is_gone(&uid))
            .await;
        assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn ends_that_the_runtime_tells_first_are_none_of_the_kernels() {
    let (node, uid, id) = node_at_rest(POD).await;
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
