//! Observations of exits and removals.

use std::collections::BTreeMap;

use rubelet_cri::v1::ContainerEventType as Kind;
use rubelet_pleg::LifecycleKind;
use rubelet_sim::{Behavior, EntryKind, EventFault, EventFlavour, Subject};
use tokio::time::sleep;

use super::queries::{APP, DELIVERY_LIMIT, ONCE, millis};
use crate::tests::node::{Node, seconds};

/// Scenario 5.
#[tokio::test(start_paused = true)]
async fn events_of_an_old_sandbox_do_not_affect_the_new_one() {
    for vanishes in [false, true] {
        let node = Node::new();
        let uid = node.apply("web", APP);
        node.until_running().await;
        let old = node.sim.sandboxes(&uid).remove(0);
        let held = EventFault::held().on(Subject::id(&old));
        node.sim.inject_event(held.always());
        node.sim.kill_sandbox(&old);
        let again = |node: &Node| node.calls("RunPodSandbox") == 2 && node.is_running("web");
        // Without an event, a list shows that a sandbox has stopped.
        node.within(seconds(120), "a second sandbox", again).await;
        sleep(seconds(5)).await;
        let live = node.sim.sandboxes(&uid).pop().expect("it is there");
        assert_ne!(live, old);
        if vanishes {
            node.sim.remove_sandbox_externally(&old);
        }
        let ip = node.pod("web").expect("it is there").status.pod_ips.clone();
        node.sim.release_events();
        for _ in 0..50 {
            sleep(millis(100)).await;
            let known = node.known("web");
            assert_eq!(known.sandboxes[0].id.as_str(), live);
            assert!(known.sandboxes[0].ready);
            assert_eq!(node.pod("web").expect("it is there").status.pod_ips, ip);
        }
        sleep(seconds(70)).await;
        assert_eq!(node.calls("RunPodSandbox"), 2, "gone: {vanishes}");
        assert!(node.is_running("web"));
        node.assert_never_twice(&uid);
    }
}

/// CRI-O emits no events for containers that it removes with their sandbox.
#[tokio::test(start_paused = true)]
async fn containers_removed_with_their_sandbox_are_forgotten() {
    let node = Node::new();
    node.sim.events(EventFlavour::CriO);
    let uid = node.apply("web", APP);
    node.until_running().await;
    let first = node.kill_app(&uid, 1);
    let again = |node: &Node| {
        let running = node.sim.running(&uid, "app");
        running.is_some_and(|id| id != first) && node.is_running("web")
    };
    node.within(seconds(60), "a restart", again).await;
    sleep(seconds(20)).await;
    assert_eq!(node.known("web").containers.len(), 2);
    let old = node.sim.sandboxes(&uid).remove(0);
    node.sim.remove_sandbox_externally(&old);
    let forgotten = |node: &Node| {
        let known = node.known("web");
        let mut sandboxes = known.containers.iter().map(|found| found.sandbox.as_str());
        sandboxes.all(|sandbox| sandbox != old)
    };
    let took = node.within(seconds(300), "what is gone", forgotten).await;
    assert!(took <= DELIVERY_LIMIT, "{took:?}");
}

/// Scenario 19.
#[tokio::test(start_paused = true)]
async fn a_late_exit_reason_is_still_published() {
    let node = Node::new();
    let killed = Behavior::runs_out_of_memory(seconds(1)).with_reason_after(millis(200));
    node.sim.on_container("app", killed);
    let uid = node.apply("job", ONCE);
    let exited = |node: &Node| node.exit_times(&uid, "app").len() == 1;
    node.until("the exit", exited).await;
    let reported = |node: &Node| node.state("job", "app") == "Terminated OOMKilled 137";
    let took = node.until("the reason is reported", reported).await;
    assert!(took <= millis(400), "{took:?}");
}

/// containerd with systemd's scopes.
#[tokio::test(start_paused = true)]
async fn an_oom_kill_that_only_the_kernel_tells_of_is_the_reason() {
    for told in [true, false] {
        let node = Node::new();
        let uid = node.apply("job", ONCE);
        let running = |node: &Node| node.sim.running(&uid, "app").is_some();
        node.until("it runs", running).await;
        let id = node.sim.running(&uid, "app").expect("it runs");
        if told {
            node.agent().pleg().note_oom_kill(id.as_str().into());
        }
        node.kill_app(&uid, 137);
        let ended = |node: &Node| node.state("job", "app").starts_with("Terminated");
        node.until("its end is reported", ended).await;
        let reason = if told { "OOMKilled" } else { "Error" };
        assert_eq!(node.state("job", "app"), format!("Terminated {reason} 137"));
    }
}

/// Scenario 20.
#[tokio::test(start_paused = true)]
async fn pod_termination_waits_only_for_its_containers() {
    let node = Node::new();
    let slow = Behavior::runs().exiting_on_term(millis(640), 0);
    node.sim.on_container("app", slow);
    let uid = node.apply("web", &format!("terminationGracePeriodSeconds: 1, {APP}"));
    node.until_running().await;
    sleep(seconds(20)).await;
    node.remove_manifest("web");
    let gone = |node: &Node| node.is_gone(&uid);
    node.until("the pod is gone", gone).await;
    let exit = node.exit_times(&uid, "app")[0];
    let added = node.uptime() - exit;
    assert!(added <= DELIVERY_LIMIT, "{added:?}");
}

/// Scenario 22.
#[tokio::test(start_paused = true)]
async fn a_removed_pod_is_forgotten_at_once_without_a_sandbox_event() {
    let node = Node::new();
    node.sim.events(EventFlavour::CriO);
    let uid = node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(20)).await;
    let sandbox = node.sim.sandboxes(&uid).remove(0);
    node.remove_manifest("web");
    node.until("the pod is gone", |node| node.is_gone(&uid))
        .await;
    let oracle = node.sim.oracle();
    let removed = oracle.entries().iter().find_map(|entry| match &entry.what {
        EntryKind::SandboxRemoved { id, .. } if *id == sandbox => Some(entry.at),
        _ => None,
    });
    let took = node.uptime() - removed.expect("it was removed");
    assert!(took <= millis(100), "{took:?}");
    assert_eq!(node.lifecycle_count(&sandbox, LifecycleKind::Removed), 1);
    assert!(node.known("web").sandboxes.is_empty());
}

/// Scenario 23.
#[tokio::test(start_paused = true)]
async fn no_container_is_removed_before_its_exit_code_is_reported() {
    let node = Node::new();
    node.sim
        .on_container_with("app", |start| match start.earlier {
            count @ 0..6 => Behavior::exits(millis(500), 10 + i32::try_from(count).unwrap_or(0)),
            _ => Behavior::runs(),
        });
    let uid = node.apply("web", APP);
    node.until("the last restart", |node| {
        node.sim.oracle().starts(&uid, "app") == 7 && node.is_running("web")
    })
    .await;
    node.remove_manifest("web");
    node.until("the pod is gone", |node| node.is_gone(&uid))
        .await;
    let oracle = node.sim.oracle();
    let mut codes = BTreeMap::new();
    let mut removed = 0;
    for entry in oracle.entries() {
        match &entry.what {
            EntryKind::ContainerExited { instance, code, .. } => {
                codes.insert(instance.id.clone(), *code);
            }
            EntryKind::ContainerRemoved(instance) => {
                let reported = node.lifecycle_of(&instance.id);
                let died = reported
                    .iter()
                    .find(|(kind, _)| *kind == LifecycleKind::Died);
                let (_, at) = died.expect("its exit was reported");
                assert!(*at <= entry.at, "{instance} was removed first");
                removed += 1;
            }
            _ => {}
        }
    }
    assert_eq!((codes.len(), removed), (7, 7));
    let events = node.lifecycle();
    let died = events
        .iter()
        .filter(|event| event.kind == LifecycleKind::Died && event.container.is_some());
    assert_eq!(died.count(), 7);
}

/// Scenario 24.
#[tokio::test(start_paused = true)]
async fn a_sandbox_status_without_containers_hides_no_container() {
    let node = Node::new();
    node.wire.stamp_sandboxes(true);
    let uid = node.apply("web", APP);
    let other = node.apply("other", APP);
    node.until_running().await;
    node.kill_app(&uid, 1);
    node.sim.replay_events(50);
    sleep(seconds(70)).await;
    assert!(node.is_running("web") && node.is_running("other"));
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 2);
    assert_eq!(node.sim.oracle().starts(&other, "app"), 1);
    assert_eq!(node.calls("RunPodSandbox"), 2);
}

/// Scenario 25.
#[tokio::test(start_paused = true)]
async fn a_brief_unknown_state_restarts_nothing() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    let id = node.sim.running(&uid, "app").expect("it runs");
    // It may also have been inspected before it ran.
    let changed = node.lifecycle_count(&id, LifecycleKind::Changed);
    node.sim.set_down(true);
    sleep(millis(400)).await;
    let unknown = rubelet_cri::v1::ContainerState::ContainerUnknown;
    node.sim.override_state(&id, Some(unknown));
    node.sim.set_down(false);
    sleep(millis(300)).await;
    node.sim.override_state(&id, None);
    for _ in 0..100 {
        assert_eq!(node.state("web", "app"), "Running");
        sleep(millis(100)).await;
    }
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
    assert_eq!(node.lifecycle_count(&id, LifecycleKind::Changed), changed);
    let asked = node.sim.oracle().events_delivered().len();
    assert!(
        asked > 0,
        "events of {:?} came",
        Kind::ContainerStartedEvent
    );
}

/// An exit is reported although the pod is being inspected and another container is UNKNOWN.
#[tokio::test(start_paused = true)]
async fn an_exit_beside_an_unknown_container_is_reported_at_once() {
    let node = Node::new();
    let uid = node.apply(
        "web",
        "restartPolicy: Never, containers: [{name: a, image: 'app:1'}, \
         {name: b, image: 'app:1'}, {name: c, image: 'app:1'}]",
    );
    node.until_running().await;
    sleep(seconds(20)).await;
    let [a, b, c] = ["a", "b", "c"].map(|name| node.sim.running(&uid, name).unwrap());
    node.sim.set_latency_of("ContainerStatus", millis(200));
    let unknown = rubelet_cri::v1::ContainerState::ContainerUnknown;
    node.sim.override_state(&a, Some(unknown));
    node.sim.kill_container(&b, 1, "");
    // By then the response is on its way.
    sleep(millis(150)).await;
    node.sim.override_state(&a, None);
    node.sim.kill_container(&c, 1, "");
    let reported = |node: &Node| node.state("web", "c").starts_with("Terminated");
    let took = node.until("the end is reported", reported).await;
    assert!(took <= millis(600), "{took:?}");
}
