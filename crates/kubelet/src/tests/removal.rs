//! Removed manifests.

use std::time::Duration;

use rubelet_sim::{Behavior, EntryKind};
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}]";

/// When such an entry was first recorded, since the simulation started.
fn time_of(node: &Node, wanted: fn(&EntryKind) -> bool) -> Duration {
    let oracle = node.sim.oracle();
    let entry = oracle.entries().iter().find(|entry| wanted(&entry.what));
    entry.expect("it happened").at
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_obeys_sigterm_is_removed_completely_at_once() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(5)).await;
    node.remove_manifest("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took < Duration::from_millis(100), "{took:?}");
    assert_eq!(node.host.cleaned(&uid), 1);
    sleep(seconds(2)).await;
    assert!(!node.record("web").exists());
    assert!(
        node.events("web")
            .contains(&"Killing Stopping container app".to_owned())
    );
    assert_eq!(node.sim.oracle().exits(&uid, "app"), [(143, "Error")]);
    assert_eq!(node.host.cleaned(&uid), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removal_waits_for_no_start_and_no_stop_of_another_pod() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    for number in 0..5 {
        node.apply(&format!("old-{number}"), APP);
    }
    node.until_running().await;
    sleep(seconds(5)).await;
    // The runtime is busy for a long time with starts and stops of other pods.
    for call in ["RunPodSandbox", "StopPodSandbox"] {
        node.sim.set_latency_of(call, Duration::from_millis(1500));
    }
    node.remove_manifest("web");
    for number in 0..5 {
        node.remove_manifest(&format!("old-{number}"));
    }
    for number in 0..40 {
        node.apply(&format!("new-{number}"), APP);
    }
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took < seconds(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn volumes_of_a_finished_pod_are_removed_at_once_and_only_once() {
    for code in [0, 1] {
        let mut node = Node::new();
        node.sim
            .on_image("app:1", Behavior::exits(seconds(7), code));
        let uid = node.apply("job", &format!("restartPolicy: Never, {APP}"));
        node.until_running().await;
        sleep(seconds(5)).await;
        assert_eq!(node.host.volumes_removed(&uid), 0);
        let removed = |node: &Node| node.host.volumes_removed(&uid) == 1;
        let took = node.until("the volumes are gone", removed).await;
        assert!(took < seconds(3), "{took:?}");
        // The pod is still published, with its log.
        sleep(seconds(600)).await;
        node.restart().await;
        sleep(seconds(600)).await;
        assert!(node.host.has_directory(&uid));
        assert!(node.state("job", "app").starts_with("Terminated"));
        assert_eq!(node.host.volumes_removed(&uid), 1);
        node.remove_manifest("job");
        node.until("the end", |node| node.is_gone(&uid)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_ignores_sigterm_has_its_whole_grace_and_no_more() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::runs().ignoring_term());
    let uid = node.apply("web", &format!("terminationGracePeriodSeconds: 17, {APP}"));
    node.until_running().await;
    node.remove_manifest("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    let termed = time_of(&node, |what| matches!(what, EntryKind::SigtermSent(_)));
    let ended = time_of(&node, |what| {
        matches!(what, EntryKind::ContainerExited { .. })
    });
    assert_eq!(ended - termed, seconds(17));
    assert!(took >= seconds(17) && took <= seconds(18), "{took:?}");
    assert_eq!(node.sim.oracle().exits(&uid, "app"), [(137, "Error")]);
}

#[tokio::test(start_paused = true)]
async fn all_containers_are_stopped_at_the_same_time() {
    let node = Node::new();
    node.sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(8), 0));
    let containers: Vec<_> = (0..4)
        .map(|number| format!("{{name: c{number}, image: 'app:1'}}"))
        .collect();
    let uid = node.apply("web", &format!("containers: [{}]", containers.join(", ")));
    node.until_running().await;
    node.remove_manifest("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took >= seconds(8) && took < seconds(9), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_readded_during_its_removal_starts_after_it() {
    let mut node = Node::new();
    node.sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(10), 0));
    let uid = node.apply("web", APP);
    node.until_running().await;
    let first = node.sim.running(&uid, "app").unwrap();
    for restart in [false, true] {
        node.remove_manifest("web");
        sleep(seconds(3)).await;
        if restart {
            node.restart().await;
            sleep(seconds(1)).await;
        }
        node.apply("web", APP);
        sleep(seconds(20)).await;
        node.until_running().await;
        node.assert_never_twice(&uid);
    }
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 3);
    assert!(
        node.containers(&uid)
            .iter()
            .all(|container| container.id != first)
    );
    let status = node.container("web", "app").unwrap();
    assert_eq!(
        (status.restart_count, status.last_state),
        (0, None),
        "it is another pod"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_until_one_of_the_same_name_has_ended() {
    let mut node = Node::new();
    node.sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(10), 0));
    for restart in [false, true] {
        let old = node.apply_with("web", "uid: old", APP);
        node.until_running().await;
        let new = node.apply_with("web", "uid: new", APP);
        sleep(seconds(5)).await;
        if restart {
            node.restart().await;
        }
        sleep(seconds(2)).await;
        assert_eq!(
            node.sim.oracle().exits(&old, "app").len(),
            usize::from(restart)
        );
        assert_eq!(node.sim.sandboxes(&new).len(), 0, "it waits");
        node.until("the new one runs", |node| {
            node.sim.running(&new, "app").is_some()
        })
        .await;
        assert!(node.is_gone(&old));
        node.remove_manifest("web");
        node.until("the end", |node| node.is_gone(&new)).await;
        sleep(seconds(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_uid_waits_for_the_old_pod_across_an_agent_restart() {
    let mut node = Node::new();
    node.sim
        .on_image("app:1", Behavior::runs().exiting_on_term(seconds(10), 0));
    let old = node.apply_with("web", "uid: old", APP);
    node.until_running().await;
    node.kill().await;
    let new = node.apply_with("web", "uid: new", APP);
    node.start();
    node.until("the new one runs", |node| {
        node.sim.running(&new, "app").is_some()
    })
    .await;
    let oracle = node.sim.oracle();
    let position = |wanted: &dyn Fn(&EntryKind) -> bool| {
        oracle
            .entries()
            .iter()
            .position(|entry| wanted(&entry.what))
            .unwrap()
    };
    let removed = position(
        &|what| matches!(what, EntryKind::SandboxRemoved { pod_uid, .. } if *pod_uid == old),
    );
    let made = position(
        &|what| matches!(what, EntryKind::SandboxReady { pod_uid, .. } if *pod_uid == new),
    );
    assert!(removed < made, "{oracle}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_clean_up_is_retried_until_it_works() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    node.host.fail_clean_up("web", Some("a volume is in use"));
    node.remove_manifest("web");
    sleep(seconds(60)).await;
    assert!(!node.is_gone(&uid));
    let events = node.events("web");
    assert!(
        events.contains(&"FailedCleanUp a volume is in use".to_owned()),
        "{events:?}"
    );
    node.host.fail_clean_up("web", None);
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took <= seconds(11), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_never_started_is_removed_as_well() {
    let node = Node::new();
    node.host.fail_prepare("web", Some("no such volume"));
    let uid = node.apply("web", APP);
    sleep(seconds(20)).await;
    assert!(
        node.events("web")
            .contains(&"FailedMount no such volume".to_owned())
    );
    node.remove_manifest("web");
    let took = node.until("the end", |node| node.is_gone(&uid)).await;
    assert!(took < seconds(1), "{took:?}");
    sleep(seconds(2)).await;
    assert!(!node.record("web").exists());
}

#[tokio::test(start_paused = true)]
async fn a_hundred_pods_come_and_go() {
    let node = Node::new();
    let uids: Vec<_> = (0..100)
        .map(|number| node.apply(&format!("web-{number}"), APP))
        .collect();
    node.until_running().await;
    for number in 0..100 {
        node.remove_manifest(&format!("web-{number}"));
    }
    node.until("all are gone", |node| {
        uids.iter().all(|uid| node.is_gone(uid))
    })
    .await;
    for uid in &uids {
        node.assert_never_twice(uid);
        assert_eq!(node.sim.oracle().starts(uid, "app"), 1);
    }
    sleep(seconds(3)).await;
    assert_eq!(std::fs::read_dir(node.records()).unwrap().count(), 0);
}
