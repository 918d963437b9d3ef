//! Streams that are open and silent.

use rubelet_image_pull::images::PullParallelism;
use tokio::time::sleep;

use super::queries::{APP, ONCE, millis};
use crate::tests::node::{Node, seconds};
use rubelet_cri::Timeouts;

/// Scenario 13, on a node where something is started.
#[tokio::test(start_paused = true)]
async fn a_start_without_an_event_reconnects_and_finds_missed_exits() {
    let node = Node::new();
    let uid = node.apply("job", ONCE);
    node.until_running().await;
    // The lists after the connect are over, and the next one is far off.
    sleep(seconds(20)).await;
    let streams = node.sim.oracle().event_streams();
    node.sim.mute_events();
    sleep(millis(700)).await;
    let id = node.kill_app(&uid, 1);
    node.apply("late", APP);
    let opened = |node: &Node| node.sim.oracle().event_streams() > streams;
    node.within(seconds(3), "a new stream", opened).await;
    let took = node.until_death_of(&id).await;
    assert!(took <= millis(100), "{took:?}");
    let missed = node.metric("rubelet_pleg_missed_changes_total{type=\"echo\"}");
    assert!(missed >= 1.0, "{missed}");
    // The new stream delivers events.
    let other = node.apply("other", ONCE);
    node.until_running_but("job").await;
    sleep(seconds(10)).await;
    let id = node.kill_app(&other, 1);
    let took = node.until_death_of(&id).await;
    assert!(took <= millis(50), "{took:?}");
}

/// Scenario 13, on a node where nothing is started.
#[tokio::test(start_paused = true)]
async fn without_any_start_the_slow_relist_finds_missed_exits() {
    for after in [1, 15, 40, 70, 130] {
        let node = Node::new();
        let uid = node.apply("job", ONCE);
        let second = node.apply("second", ONCE);
        node.until_running().await;
        sleep(seconds(after)).await;
        node.sim.mute_events();
        let id = node.kill_app(&uid, 1);
        let took = node.until_death_of(&id).await;
        assert!(took <= seconds(70), "{after} s: {took:?}");
        if after < 5 {
            // A list so soon after a connect proves nothing about the stream.
            continue;
        }
        // The agent has reconnected, but does not trust the new stream at once.
        sleep(seconds(2)).await;
        let id = node.kill_app(&second, 1);
        let took = node.until_death_of(&id).await;
        assert!(took <= millis(1100), "{after} s: {took:?}");
    }
}

/// Scenario 14.
#[tokio::test(start_paused = true)]
async fn a_stream_without_a_response_delays_neither_start_nor_relist() {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.withhold_events(true);
    node.start();
    let listed = node.agent().pleg().relists();
    sleep(millis(10)).await;
    assert!(listed.borrow().at.is_some(), "the first list came");
    let mark = node.sim.oracle().mark();
    sleep(seconds(10)).await;
    let lists = node.sim.oracle().calls_since(mark);
    let lists = lists.iter().filter(|call| call.call == "ListPodSandbox");
    assert!(lists.count() >= 2, "lists go on");
    let uid = node.apply("job", ONCE);
    let took = node.until_running().await;
    assert!(took <= millis(100), "{took:?}");
    // The start had no event: from now on the agent relists often.
    sleep(seconds(5)).await;
    let id = node.kill_app(&uid, 1);
    let took = node.until_death_of(&id).await;
    assert!(took <= millis(1100), "{took:?}");
}
