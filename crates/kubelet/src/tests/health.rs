//! Tasks that panic, and the heartbeats of control loops.

use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

#[tokio::test(start_paused = true)]
async fn a_panicked_pod_task_is_restarted_and_others_are_unaffected() {
    let node = Node::new();
    let other = node.apply("other", APP);
    node.until_running().await;
    node.host.panic_in_prepare("bad", 3);
    let bad = node.apply("bad", APP);
    let took = node.until_running().await;
    assert!(took <= seconds(30), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&bad, "app"), 1);
    assert_eq!(node.sim.oracle().starts(&other, "app"), 1);
    let events = node.events("bad");
    assert!(
        events.iter().any(|event| event.starts_with("TaskDied ")),
        "{events:?}"
    );
    assert_eq!(node.container("other", "app").unwrap().restart_count, 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_task_always_panics_backs_off_and_can_be_removed() {
    let node = Node::new();
    node.host.panic_in_prepare("bad", usize::MAX);
    let bad = node.apply("bad", APP);
    sleep(seconds(120)).await;
    let left = node.host.panics_left("bad");
    let tries = usize::MAX - left;
    assert!((3..=30).contains(&tries), "{tries} tries in two minutes");
    let other = node.apply("other", APP);
    let took = node
        .until("the other runs", |node| node.is_running("other"))
        .await;
    assert!(took < seconds(2), "{took:?}");
    node.remove_manifest("bad");
    let gone = |node: &Node| node.is_gone(&bad) && !node.record("bad").exists();
    let took = node.until("the bad one is gone", gone).await;
    assert!(took <= seconds(15), "{took:?}");
    assert_eq!(node.sim.oracle().starts(&other, "app"), 1);
}

#[tokio::test(start_paused = true)]
async fn control_loops_send_heartbeats_even_if_the_runtime_hangs() {
    let node = Node::new();
    node.apply("web", APP);
    node.until_running().await;
    for _ in 0..10 {
        sleep(seconds(17)).await;
        for (name, heartbeat) in &node.agent().heartbeats {
            assert!(heartbeat.age() <= seconds(11), "{name}");
        }
    }
    // A runtime that hangs does not stop the heartbeats.
    let _hang = node.sim.hang("ListContainers", rubelet_sim::Subject::any());
    sleep(seconds(300)).await;
    for (name, heartbeat) in &node.agent().heartbeats {
        assert!(heartbeat.age() <= seconds(11), "{name}");
    }
}
