//! Pods, statuses, mirror pods and events of a node against a model API server, also one that is
//! slow, busy, away or wrong. No host and no runtime: what pods do is made up.

#[path = "sync/node.rs"]
mod node;
#[path = "sync/pods.rs"]
mod pods;

use std::time::Duration;

use rubelet_node_state::events::EventType;
use serde_json::{Value, json};
use sim_api::{Restart, Rule, profile};
use tokio::time::{Instant, sleep};

use node::World;

const SECOND: Duration = Duration::from_secs(1);

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

fn phase(pod: &Value) -> &str {
    pod["status"]["phase"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_pod_starts_gets_ready_is_deleted_and_is_gone() {
    let world = World::start(1).await;
    world.create("web", "Always");
    let ready = |pod: Option<&Value>| {
        let conditions = pod.and_then(|pod| pod["status"]["conditions"].as_array());
        let mut list = conditions.into_iter().flatten();
        list.any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let pod = world.wait("web", 30, ready).await.expect("a pod");
    assert_eq!(phase(&pod), "Running");
    let text = world.metrics().render();
    let started = "\nkubelet_pod_start_total_duration_seconds_count 1\n";
    assert!(text.contains(started), "{text}");
    assert_eq!(pod["status"]["hostIP"], "192.168.0.1");
    let id = &pod["status"]["containerStatuses"][0]["containerID"];
    assert!(
        id.as_str().is_some_and(|id| id.starts_with("model://")),
        "{id}"
    );
    world
        .api
        .delete("pods", "default", "web", None)
        .expect("a deletion");
    world.wait("web", 60, |pod| pod.is_none()).await;
    world.check();
    let deletes = world.api.count(|one| one.verb == "delete");
    assert_eq!(deletes, 1);
}

#[tokio::test(start_paused = true)]
async fn a_status_goes_out_in_the_instant_in_which_it_changes() {
    let world = World::start(2).await;
    for number in 0..100 {
        world.create(&format!("p{number}"), "Always");
    }
    seconds(5).await;
    world.calm();
    seconds(15).await;
    world.api.forget_requests();
    let started = world.now();
    let changed = world.flip_all();
    assert_eq!(changed, 100);
    seconds(1).await;
    let patches = world.api.requests();
    let late = patches
        .iter()
        .filter(|one| one.at - started > Duration::from_millis(5));
    assert_eq!(late.count(), 0, "nothing waits, nothing is batched");
    assert_eq!(
        patches
            .iter()
            .filter(|one| one.resource == "pods/status")
            .count(),
        100
    );
}

#[tokio::test(start_paused = true)]
async fn null_in_all_that_an_api_server_says_changes_no_pod() {
    let world = World::start(5).await;
    world.api.add_fault("* * nulls".parse().expect("a rule"));
    world.restart_agent();
    for number in 0..20 {
        world.create(&format!("p{number}"), "Always");
    }
    world.manifest("proxy", "x");
    seconds(10).await;
    world.restart_agent();
    seconds(20).await;
    for number in 0..10 {
        let name = format!("p{number}");
        world
            .api
            .delete("pods", "default", &name, None)
            .expect("a pod");
    }
    seconds(20).await;
    world.calm();
    world.agrees(120).await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_quiet_node_asks_for_nothing() {
    let world = World::start(3).await;
    for number in 0..20 {
        world.create(&format!("p{number}"), "Always");
    }
    world.manifest("proxy", "x");
    seconds(10).await;
    world.calm();
    seconds(60).await;
    world.api.forget_requests();
    seconds(3600).await;
    let asked = world.api.count(|one| one.verb != "watch");
    assert_eq!(asked, 0, "{:?}", world.api.request_counts());
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_static_pod_is_shown_and_shown_again() {
    let world = World::start(4).await;
    let shown = |pod: Option<&Value>| pod.is_some_and(|pod| phase(pod) == "Running");
    world.manifest("proxy", "x");
    let pod = world
        .wait("proxy-n", 30, shown)
        .await
        .expect("a mirror pod");
    let first = pod["metadata"]["uid"].clone();
    assert_eq!(pod["metadata"]["ownerReferences"][0]["kind"], "Node");
    // kubectl delete
    world
        .api
        .delete("pods", "default", "proxy-n", None)
        .expect("a deletion");
    let other =
        |pod: Option<&Value>| shown(pod) && pod.is_some_and(|pod| pod["metadata"]["uid"] != first);
    let pod = world.wait("proxy-n", 30, other).await.expect("another");
    assert_eq!(pod["spec"]["containers"][0]["image"], "x");
    world.manifest("proxy", "z");
    let edited = |pod: Option<&Value>| {
        shown(pod) && pod.is_some_and(|pod| pod["spec"]["containers"][0]["image"] == "z")
    };
    world.wait("proxy-n", 30, edited).await;
    world.remove_manifest("proxy");
    world.wait("proxy-n", 60, |pod| pod.is_none()).await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn pods_that_follow_each_other_under_one_name_are_distinguished() {
    let world = World::start(12).await;
    let slow: Rule = "write * delay=20ms..900ms".parse().expect("a rule");
    world.api.add_fault(slow);
    for round in 0..20 {
        for number in 0..5 {
            let name = format!("p{number}");
            if round > 0 {
                let forced = world.api.delete("pods", "default", &name, Some(0));
                forced.expect("a deletion");
            }
            world.create(&name, "Always");
        }
        sleep(Duration::from_millis(700)).await;
    }
    world.calm();
    world.agrees(60).await;
    world.check();
}

#[tokio::test(start_paused = true)]
async fn events_arrive_and_are_counted() {
    let world = World::start(5).await;
    world.create("web", "Always");
    seconds(5).await;
    for _ in 0..7 {
        world.event(
            "web",
            EventType::Warning,
            "BackOff",
            "Back-off restarting failed container",
        );
        seconds(1).await;
    }
    let events = world.api.list("events");
    let event = events
        .iter()
        .find(|one| one["reason"] == "BackOff")
        .expect("an event");
    assert_eq!(event["count"], 7);
    assert_eq!(
        event["source"],
        json!({"component": "kubelet", "host": "n"})
    );
    assert_eq!(event["involvedObject"]["name"], "web");
}

#[tokio::test(start_paused = true)]
async fn what_happened_while_the_api_server_was_away_is_reported_when_it_is_back() {
    let world = World::start(6).await;
    for number in 0..30 {
        let policy = if number % 3 == 0 { "Never" } else { "Always" };
        world.create(&format!("p{number}"), policy);
    }
    world.manifest("proxy", "x");
    seconds(20).await;
    let restart = Restart {
        down: 120 * SECOND,
        lose_history: true,
    };
    world.api.restart(restart).await;
    let back = Instant::now();
    world.calm();
    world.agrees(60).await;
    assert!(back.elapsed() < 45 * SECOND);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_opened_again_when_it_does_not_report_the_nodes_own_patch() {
    let world = World::start(14).await;
    for number in 0..10 {
        world.create(&format!("p{number}"), "Always");
    }
    seconds(20).await;
    world.calm();
    let silent: Rule = "watch pods times=1 stall=10s".parse().expect("a rule");
    world.api.add_fault(silent);
    world.api.forget_requests();
    world.restart_agent();
    seconds(20).await;
    world.create("late", "Always");
    assert_eq!(world.flip_all(), 10);
    let runs = |pod: Option<&Value>| pod.is_some_and(|pod| phase(pod) == "Running");
    world.wait("late", 60, runs).await;
    world.agrees(60).await;
    let watches = world
        .api
        .count(|one| one.verb == "watch" && one.resource == "pods");
    assert_eq!(watches, 2, "once for all pods");
    world.check();
}

#[tokio::test(start_paused = true)]
async fn under_faults_nothing_goes_back_and_every_last_status_arrives() {
    for (seed, name) in [(7, "slow"), (8, "busy"), (9, "flaky"), (10, "rough")] {
        let world = World::start(seed).await;
        profile(name)
            .expect("a profile")
            .into_iter()
            .for_each(|rule| world.api.add_fault(rule));
        for round in 0..10 {
            for number in 0..4 {
                let policy = ["Always", "OnFailure", "Never"][number % 3];
                world.create(&format!("p{round}-{number}"), policy);
            }
            world.manifest("proxy", if round % 2 == 0 { "x" } else { "z" });
            seconds(15).await;
            match round {
                3 => world.api.disconnect(),
                5 => world.api.hang_connections(),
                7 => {
                    let down = 20 * SECOND;
                    world
                        .api
                        .restart(Restart {
                            down,
                            lose_history: round > 6,
                        })
                        .await;
                }
                9 => world.restart_agent(),
                _ => {}
            }
            if round >= 2 {
                for number in 0..4 {
                    let name = format!("p{}-{number}", round - 2);
                    // Some are gone already: a Job's owner may be faster.
                    let _ = world
                        .api
                        .delete("pods", "default", &name, (number == 3).then_some(0));
                }
            }
        }
        world.api.clear_faults();
        world.calm();
        world.agrees(900).await;
        world.check();
    }
}
