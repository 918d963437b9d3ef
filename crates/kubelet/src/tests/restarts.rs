//! Containers that exit: restarts, back-off, and restart policies.

use std::time::Duration;

use rubelet_api::status::Phase;
use rubelet_sim::Behavior;
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// Whole seconds between the exit of each instance and the start of the next one.
fn waits(node: &Node, uid: &str, name: &str) -> Vec<u64> {
    let (starts, ends) = (node.start_times(uid, name), node.exit_times(uid, name));
    let pairs = ends.iter().zip(&starts[1..]);
    pairs
        .map(|(end, start)| (*start - *end).as_secs())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_container_that_dies_is_restarted_within_the_relist_period() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    sleep(Duration::from_millis(300)).await;
    node.kill_container(&uid, "app", 7);
    let restarted = |node: &Node| node.sim.oracle().starts(&uid, "app") == 2;
    let took = node.until("a second start", restarted).await;
    assert!(took <= Duration::from_millis(1100), "{took:?}");

    node.until_running().await;
    let status = node.container("web", "app").unwrap();
    assert_eq!(status.restart_count, 1);
    let last = status.last_state.unwrap();
    assert_eq!((last.exit_code, &*last.reason), (7, "Error"));
    assert_eq!(node.sim.sandboxes(&uid).len(), 1);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_waits_0_10_20_40_up_to_300_seconds() {
    let node = Node::new();
    let crash = Behavior::exits(Duration::from_millis(1), 1);
    node.sim.on_image("app:1", crash);
    let uid = node.apply("web", APP);
    let ends = |node: &Node| node.exit_times(&uid, "app").len();
    node.until("nine crashes", |node| ends(node) == 9).await;
    assert_eq!(
        waits(&node, &uid, "app")[..8],
        [0, 10, 20, 40, 80, 160, 300, 300]
    );
    node.until("the back-off is reported", |node| {
        node.state("web", "app") == "Waiting CrashLoopBackOff"
    })
    .await;
    let status = node.container("web", "app").unwrap();
    assert_eq!(status.restart_count, 8);
    assert_eq!(status.last_state.unwrap().exit_code, 1);
    assert_eq!(node.phase("web"), Some(Phase::Running));
    assert!(node.events("web").contains(&format!(
        "BackOff Back-off restarting failed container app in pod web-n_default({uid})"
    )));
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn running_for_ten_minutes_resets_the_back_off() {
    let node = Node::new();
    node.sim
        .on_image_with("app:1", |start| match start.earlier {
            0..=3 => Behavior::exits(seconds(1), 1),
            4 => Behavior::exits(seconds(601), 1),
            _ => Behavior::exits(seconds(1), 1),
        });
    let uid = node.apply("web", APP);
    let ends = |node: &Node| node.exit_times(&uid, "app").len();
    node.until("seven crashes", |node| ends(node) == 7).await;
    sleep(seconds(1)).await;
    assert_eq!(waits(&node, &uid, "app")[..6], [0, 10, 20, 40, 0, 10]);
}

#[tokio::test(start_paused = true)]
async fn kill_9_during_a_back_off_neither_shortens_nor_forgets_it() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::exits(seconds(1), 1));
    let uid = node.apply("web", APP);
    let ends = |node: &Node| node.exit_times(&uid, "app").len();
    for crashes in 1..=6 {
        node.until("a crash", |node| ends(node) == crashes).await;
        sleep(seconds(2)).await;
        node.restart().await;
        sleep(seconds(2)).await;
        node.restart().await;
    }
    node.until("seven crashes", |node| ends(node) == 7).await;
    assert_eq!(waits(&node, &uid, "app")[..6], [0, 10, 20, 40, 80, 160]);
    assert_eq!(node.container("web", "app").unwrap().restart_count, 6);
}

#[tokio::test(start_paused = true)]
async fn kill_9_during_a_restart_does_not_forget_the_back_off() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::exits(seconds(1), 1));
    let uid = node.apply("web", APP);
    let ends = |node: &Node| node.exit_times(&uid, "app").len();
    for crashes in 1..=4 {
        let subject = rubelet_sim::Subject::container(&uid, "app");
        node.until("a crash", |node| ends(node) == crashes).await;
        // The instance is started, but the agent dies before the response.
        let hang = node.sim.hang_after_effect("StartContainer", subject);
        hang.reached().await;
        node.kill().await;
        hang.release();
        node.start();
    }
    node.until("five crashes", |node| ends(node) == 5).await;
    assert_eq!(waits(&node, &uid, "app")[..4], [0, 10, 20, 40]);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn an_exit_within_a_millisecond_is_seen_once_and_is_final() {
    let node = Node::new();
    let quick = Behavior::exits(Duration::from_millis(1), 0);
    node.sim.on_image("app:1", quick);
    let uid = node.apply("job", &format!("restartPolicy: Never, {APP}"));
    node.until("the end", |node| {
        node.phase("job") == Some(Phase::Succeeded)
    })
    .await;
    assert_eq!(node.state("job", "app"), "Terminated Completed 0");
    sleep(seconds(60)).await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert_eq!(node.state("job", "app"), "Terminated Completed 0");
}

#[tokio::test(start_paused = true)]
async fn a_late_exit_reason_is_still_reported() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let id = node.sim.running(&uid, "app").unwrap();
    node.kill_container(&uid, "app", 137);
    node.until("a restart", |node| {
        node.sim.oracle().starts(&uid, "app") == 2
    })
    .await;
    sleep(Duration::from_millis(200)).await;
    node.wire.change_reason(&id, "OOMKilled");
    let reported = |node: &Node| {
        let last = node
            .container("web", "app")
            .and_then(|status| status.last_state);
        last.is_some_and(|end| &*end.reason == "OOMKilled")
    };
    let took = node.until("the reason", reported).await;
    assert!(took <= seconds(2), "{took:?}");
    assert_eq!(node.container("web", "app").unwrap().restart_count, 1);
}

#[tokio::test(start_paused = true)]
async fn every_exit_code_is_published_before_its_container_is_removed() {
    let node = Node::new();
    node.sim.on_image_with("app:1", |start| {
        let code = i32::try_from(start.earlier).expect("few starts") + 1;
        Behavior::exits(seconds(1), code)
    });
    let uid = node.apply("web", APP);
    let mut reported = Vec::new();
    node.until("six crashes", |node| {
        if let Some(status) = node.container("web", "app") {
            let state = node.state("web", "app");
            let now = state
                .strip_prefix("Terminated Error ")
                .and_then(|code| code.parse().ok());
            let code = now.or(status.last_state.map(|end| end.exit_code));
            reported.extend(code.filter(|code| reported.last() != Some(code)));
        }
        reported.len() == 6
    })
    .await;
    assert_eq!(reported, [1, 2, 3, 4, 5, 6]);
    assert_eq!(node.containers(&uid).len(), 2, "older records are removed");
}

#[tokio::test(start_paused = true)]
async fn the_restart_policy_decides_what_follows_an_exit() {
    for (policy, code, starts, phase) in [
        ("Always", 0, 2, Phase::Running),
        ("OnFailure", 1, 2, Phase::Running),
        ("OnFailure", 0, 1, Phase::Succeeded),
        ("Never", 0, 1, Phase::Succeeded),
        ("Never", 3, 1, Phase::Failed),
    ] {
        let node = Node::new();
        node.sim
            .on_image_with("app:1", move |start| match start.earlier {
                0 => Behavior::exits(seconds(1), code),
                _ => Behavior::runs(),
            });
        let uid = node.apply("p", &format!("restartPolicy: {policy}, {APP}"));
        sleep(seconds(30)).await;
        let got = (node.sim.oracle().starts(&uid, "app"), node.phase("p"));
        assert_eq!(got, (starts, Some(phase)), "{policy} {code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_pod_stays_finished_across_an_agent_restart() {
    let mut node = Node::new();
    node.sim.on_image("app:1", Behavior::exits(seconds(1), 0));
    let uid = node.apply("job", &format!("restartPolicy: OnFailure, {APP}"));
    node.until("the end", |node| {
        node.phase("job") == Some(Phase::Succeeded)
    })
    .await;
    sleep(seconds(5)).await;
    node.restart().await;
    sleep(seconds(60)).await;
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert_eq!(node.phase("job"), Some(Phase::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn a_dead_sandbox_is_replaced_once_and_old_ones_are_removed() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    for round in 1..=3 {
        let sandbox = node.sim.sandboxes(&uid).pop().unwrap();
        node.sim.kill_sandbox(&sandbox);
        node.until("a new sandbox", |node| {
            node.calls("RunPodSandbox") == round + 1 && node.is_running("web")
        })
        .await;
        node.assert_never_twice(&uid);
        sleep(seconds(700)).await;
    }
    let left = node.sim.sandboxes(&uid).len();
    assert!(left <= 2, "{left} sandboxes are left");
    assert_eq!(node.container("web", "app").unwrap().restart_count, 3);
}

#[tokio::test(start_paused = true)]
async fn removal_of_an_old_sandbox_does_not_affect_the_new_one() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let old = node.sim.sandboxes(&uid).pop().unwrap();
    node.sim.kill_sandbox(&old);
    node.until("a new sandbox", |node| node.calls("RunPodSandbox") == 2)
        .await;
    node.until_running().await;
    node.sim.remove_sandbox_externally(&old);
    sleep(seconds(60)).await;
    assert_eq!(node.calls("RunPodSandbox"), 2);
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 2);
    assert!(node.is_running("web"));
}

#[tokio::test(start_paused = true)]
async fn a_briefly_unknown_container_is_not_restarted() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(5)).await;
    let id = node.sim.running(&uid, "app").unwrap();
    // Some of these moments are those of a relist.
    for round in 0..20 {
        node.wire.lose_track(&id, true);
        sleep(Duration::from_millis(300)).await;
        node.wire.lose_track(&id, false);
        sleep(Duration::from_millis(2000 + 50 * round)).await;
    }
    assert_eq!(node.sim.running(&uid, "app"), Some(id));
    assert_eq!(node.calls("StopContainer"), 0);
    assert!(node.is_running("web"));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_stays_unknown_is_killed_and_started_again() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let id = node.sim.running(&uid, "app").unwrap();
    node.wire.lose_track(&id, true);
    let replaced = |node: &Node| node.sim.oracle().starts(&uid, "app") == 2;
    let took = node.until("another instance", replaced).await;
    assert!(took < seconds(5), "{took:?}");
    node.assert_never_twice(&uid);
}
