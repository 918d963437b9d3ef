//! Steps of the wall clock, and suspends.

use std::time::Duration;

use rubelet_sim::EntryKind;
use tokio::time::sleep;

use super::queries::{APP, DELIVERY_LIMIT, ONCE, millis};
use crate::tests::node::{Node, seconds};

/// Kills containers after one step of the clock; returns when everything happened.
async fn run_with_clock_step(step: i64) -> (Vec<(Duration, String)>, String) {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.apply("job", ONCE);
    node.until_running().await;
    sleep(seconds(20)).await;
    node.step_clock(step);
    sleep(seconds(20)).await;
    for container in node.sim.containers() {
        node.sim.kill_container(&container.id, 4, "");
        sleep(millis(1300)).await;
    }
    sleep(seconds(30)).await;
    let ends = node.exit_times(&uid, "app");
    assert_eq!(node.start_times(&uid, "app")[1] - ends[0], millis(0));
    let oracle = node.sim.oracle();
    let happened = oracle
        .entries()
        .iter()
        .filter_map(|entry| match &entry.what {
            EntryKind::ContainerStarted(of) => Some((entry.at, format!("{} starts", of.name))),
            EntryKind::ContainerExited { instance, code, .. } => {
                Some((entry.at, format!("{} exits {code}", instance.name)))
            }
            _ => None,
        });
    let states = format!("{} {}", node.state("web", "app"), node.state("job", "app"));
    (happened.collect(), states)
}

/// Scenario 21.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_step_changes_no_report_and_no_delay() {
    let expected = run_with_clock_step(0).await;
    assert_eq!(expected.0.len(), 5, "{expected:?}");
    for step in [-3600, 3600, -86_400 * 400] {
        assert_eq!(run_with_clock_step(step).await, expected, "{step} s");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_handled_whatever_their_timestamps() {
    for step in [-3600, 3600] {
        let node = Node::new();
        let uid = node.apply("job", ONCE);
        node.until_running().await;
        sleep(seconds(20)).await;
        node.step_clock(step);
        let id = node.kill_app(&uid, 1);
        // Observations are timestamped by the wall clock; delays are not measured with it.
        let took = node.until_death_of(&id).await;
        assert!(took <= DELIVERY_LIMIT, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_suspend_relists_begin_soon_and_stay_frequent() {
    let node = Node::new();
    let uid = node.apply("job", ONCE);
    let other = node.apply("other", ONCE);
    node.until_running().await;
    sleep(seconds(200)).await;
    node.sim.mute_events();
    let (id, later) = (node.kill_app(&uid, 1), node.sim.running(&other, "app"));
    node.suspend(3600);
    // The next timer notices the suspend, at the latest the periodic status call.
    let took = node.until_death_of(&id).await;
    assert!(took <= seconds(5) + DELIVERY_LIMIT, "{took:?}");
    sleep(seconds(30)).await;
    let later = later.expect("it runs");
    node.sim.kill_container(&later, 1, "");
    let took = node.until_death_of(&later).await;
    assert!(took <= millis(1100), "{took:?}");
}
