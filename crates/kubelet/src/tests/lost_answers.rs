//! Calls that had their effect although they returned an error, or whose response never arrived.

use std::time::Duration;

use rubelet_cri::{ChangedObject, Code, CriErrorKind, Timeouts};
use rubelet_image_pull::images::PullParallelism;
use rubelet_sim::{Behavior, EventFault, Fault, Subject};
use tokio::time::sleep;

use super::node::{Node, seconds};

const APP: &str = "containers: [{name: app, image: 'app:1'}, {name: side, image: 'app:2'}]";

/// Calls that create something.
const CREATING_CALLS: [&str; 3] = ["RunPodSandbox", "CreateContainer", "StartContainer"];

/// Checks that one sandbox and one instance of each container were ever created.
fn assert_created_once(node: &Node, uid: &str, what: &str) {
    let oracle = node.sim.oracle();
    node.assert_never_twice(uid);
    assert_eq!(node.sim.sandboxes(uid).len(), 1, "{what}:\n{oracle}");
    for name in ["app", "side"] {
        assert_eq!(oracle.starts(uid, name), 1, "{what}: {name}\n{oracle}");
    }
    let made = node.containers(uid);
    assert_eq!(made.len(), 2, "{what}: {made:?}\n{oracle}");
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_call_created_is_found_and_used() {
    for call in CREATING_CALLS {
        for kind in [
            CriErrorKind::Other(Code::Unknown),
            CriErrorKind::DeadlineExceeded(seconds(120)),
            CriErrorKind::Unavailable,
            CriErrorKind::Canceled,
        ] {
            let node = Node::new();
            node.sim.fail_next(call, kind, true);
            let uid = node.apply("web", APP);
            node.until_running().await;
            sleep(seconds(30)).await;
            assert_created_once(&node, &uid, &format!("{call} {kind}"));
            let counts: Vec<u32> = node
                .pod("web")
                .unwrap()
                .status
                .containers
                .iter()
                .map(|container| container.restart_count)
                .collect();
            assert_eq!(counts, [0, 0], "{call} {kind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_call_created_after_its_deadline_is_found_and_used() {
    for call in CREATING_CALLS {
        let timeouts = Timeouts {
            request: seconds(10),
        };
        let mut node = Node::stopped(PullParallelism::Unlimited, timeouts);
        node.start();
        let hang = node.sim.hang_after_effect(call, Subject::any());
        let uid = node.apply("web", APP);
        hang.reached().await;
        sleep(seconds(25)).await;
        hang.release();
        node.until_running().await;
        assert_created_once(&node, &uid, call);
    }
}

/// No event reports the change, and the next list comes after a minute.
#[tokio::test(start_paused = true)]
async fn a_late_response_causes_an_immediate_inspection() {
    for what in ["pod", "sandbox", "container"] {
        let node = Node::new();
        let uid = node.apply("web", APP);
        node.until_running().await;
        sleep(seconds(200)).await;
        node.sim.inject_event(EventFault::lost().always());
        let sandbox = node.sim.sandboxes(&uid).remove(0);
        let container = node.sim.running(&uid, "app").expect("it runs");
        node.kill_container(&uid, "app", 1);
        let changed = match what {
            "pod" => ChangedObject::Pod(uid.clone()),
            "sandbox" => ChangedObject::Sandbox(sandbox),
            _ => ChangedObject::Container(container),
        };
        node.agent().pleg().answered_late(&changed);
        let again = |node: &Node| node.sim.oracle().starts(&uid, "app") == 2;
        let took = node.within(seconds(50), "a restart", again).await;
        assert!(took < seconds(1), "{what}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_response_for_a_removed_pod_causes_a_relist() {
    let node = Node::new();
    let uid = node.apply("web", APP);
    node.until_running().await;
    sleep(seconds(200)).await;
    let lists = node.calls("ListPodSandbox");
    for changed in [
        ChangedObject::Pod("gone".to_owned()),
        ChangedObject::Container("gone".to_owned()),
    ] {
        node.agent().pleg().answered_late(&changed);
    }
    sleep(seconds(1)).await;
    assert_eq!(node.calls("ListPodSandbox"), lists + 1);
    node.assert_never_twice(&uid);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_failed_without_effect_is_retried_after_a_wait() {
    for call in CREATING_CALLS {
        let node = Node::new();
        node.sim.inject(Fault::of(call).always());
        let uid = node.apply("web", "containers: [{name: app, image: 'app:1'}]");
        sleep(seconds(60)).await;
        let tries = node.calls(call);
        assert!(
            (5..=12).contains(&tries),
            "{call}: {tries} tries in a minute"
        );
        node.sim.clear_faults();
        let took = node.until_running().await;
        assert!(took < seconds(12), "{call}: {took:?}");
        node.assert_never_twice(&uid);
        assert_eq!(node.sim.oracle().starts(&uid, "app"), 1, "{call}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_of_a_failed_call_is_shown_until_it_works() {
    for (call, reason) in [
        ("CreateContainer", "CreateContainerError"),
        ("StartContainer", "RunContainerError"),
    ] {
        let node = Node::new();
        node.sim.inject(Fault::of(call).always());
        node.apply("web", "containers: [{name: app, image: 'app:1'}]");
        node.until(reason, |node| {
            node.state("web", "app") == format!("Waiting {reason}")
        })
        .await;
        let events = node.events("web");
        let reported = events
            .iter()
            .any(|event| event.starts_with("Failed Error: "));
        assert!(reported, "{events:?}");
        node.sim.clear_faults();
        node.until_running().await;
        assert_eq!(node.state("web", "app"), "Running");
    }
}

#[tokio::test(start_paused = true)]
async fn an_earlier_failure_is_not_the_reason_of_a_later_crash() {
    let node = Node::new();
    node.sim.on_image("app:1", Behavior::exits(seconds(30), 1));
    let uid = node.apply("web", "containers: [{name: app, image: 'app:1'}]");
    node.until_running().await;
    // The first restart succeeds, but returns an error.
    let kind = CriErrorKind::DeadlineExceeded(seconds(120));
    node.sim.fail_next("StartContainer", kind, true);
    node.until("two crashes", |node| {
        node.exit_times(&uid, "app").len() == 2
    })
    .await;
    sleep(seconds(3)).await;
    assert_eq!(node.state("web", "app"), "Waiting CrashLoopBackOff");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_the_runtime_cannot_start_backs_off() {
    let node = Node::new();
    let broken = Behavior::does_not_start("exec: \"nope\": executable file not found in $PATH");
    node.sim.on_image("app:1", broken);
    let uid = node.apply("web", "containers: [{name: app, image: 'app:1'}]");
    let took = node
        .until("the failure is reported", |node| {
            node.container("web", "app").is_some_and(|status| {
                status
                    .last_state
                    .is_some_and(|end| &*end.reason == "StartError")
            })
        })
        .await;
    assert!(took < seconds(1), "{took:?}");
    assert_eq!(node.state("web", "app"), "Waiting RunContainerError");
    sleep(seconds(120)).await;
    let tries = node.calls("StartContainer");
    assert!((4..=6).contains(&tries), "{tries} tries in two minutes");
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 0);
    let kept = node.containers(&uid).len();
    assert!(kept <= 2, "{kept} records are kept");
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_returns_too_early_is_not_retried_in_a_hot_loop() {
    for call in [
        "StopContainer",
        "StopPodSandbox",
        "RemoveContainer",
        "RemovePodSandbox",
    ] {
        let node = Node::new();
        let spec = "terminationGracePeriodSeconds: 1, containers: [{name: app, image: 'app:1'}]";
        let uid = node.apply("web", spec);
        node.until_running().await;
        // The call succeeds without an effect.
        node.wire.ignore(call, true);
        node.remove_manifest("web");
        let mark = node.sim.oracle().mark();
        sleep(seconds(60)).await;
        let calls = node.sim.oracle().calls_since(mark).len();
        assert!(calls < 400, "{call}: {calls} calls in a minute");
        node.wire.ignore(call, false);
        let took = node.until("the end", |node| node.is_gone(&uid)).await;
        assert!(took < Duration::from_secs(15), "{call}: {took:?}");
    }
}
