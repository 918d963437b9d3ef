//! Wall clocks that step.

use std::time::Duration;

use rubelet_sim::EntryKind;
use tokio::time::sleep;

use super::queries::{APP, DELIVERY_LIMIT, ONCE, millis};
use crate::tests::node::{Node, seconds};

/// Lives through exits of containers after one step of the clock; when everything happened.
async fn life(step: i64) -> (Vec<(Duration, String)>, String) {
    let node = Node::new();
    let uid = node.want("web", APP);
    node.want("job", ONCE);
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
async fn a_step_of_the_wall_clock_changes_neither_what_is_seen_nor_when() {
    let expected = life(0).await;
    assert_eq!(expected.0.len(), 5, "{expected:?}");
    for step in [-3600, 3600, -86_400 * 400] {
        assert_eq!(life(step).await, expected, "{step} s");
    }
}

#[tokio::test(start_paused = true)]
async fn events_of_the_future_and_of_long_ago_are_as_good_as_others() {
    for step in [-3600, 3600] {
        let node = Node::new();
        let uid = node.want("job", ONCE);
        node.until_running().await;
        sleep(seconds(20)).await;
        node.step_clock(step);
        let id = node.kill_app(&uid, 1);
        // What was learned is stamped by the wall clock; the wait is not.
        let took = node.until_death_of(&id).await;
        assert!(took <= DELIVERY_LIMIT, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_machine_was_suspended_all_is_looked_at_soon_and_then_often() {
    let node = Node::new();
    let uid = node.want("job", ONCE);
    let other = node.want("other", ONCE);
    node.until_running().await;
    sleep(seconds(200)).await;
    node.sim.mute_events();
    let (id, later) = (node.kill_app(&uid, 1), node.sim.running(&other, "app"));
    node.suspend(3600);
    // Whatever is next awake looks: at the latest the question for the runtime's status.
    let took = node.until_death_of(&id).await;
    assert!(took <= seconds(5) + DELIVERY_LIMIT, "{took:?}");
    sleep(seconds(30)).await;
    let later = later.expect("it runs");
    node.sim.kill_container(&later, 1, "");
    let took = node.until_death_of(&later).await;
    assert!(took <= millis(1100), "{took:?}");
}
