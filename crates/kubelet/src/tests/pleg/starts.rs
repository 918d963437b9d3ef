//! Observations during and just after a start.

use rubelet_cri::{CriErrorKind, v1::ContainerEventType as Kind};
use rubelet_pleg::LifecycleKind;
use rubelet_sim::{Behavior, CallOutcome, EntryKind, EventFault, Fault, Subject};
use tokio::time::sleep;

use super::queries::{APP, DELIVERY_LIMIT, ONCE, millis};
use crate::tests::node::{Node, seconds};

/// Scenario 1.
#[tokio::test(start_paused = true)]
async fn events_before_a_calls_response_create_nothing_twice() {
    for (call, after) in [
        ("RunPodSandbox", true),
        ("CreateContainer", true),
        ("StartContainer", false),
        ("StartContainer", true),
    ] {
        let node = Node::new();
        let hang = match after {
            true => node.sim.hang_after_effect(call, Subject::any()),
            false => node.sim.hang(call, Subject::any()),
        };
        let uid = node.apply("web", APP);
        hang.reached().await;
        for _ in 0..30 {
            node.sim.replay_events(20);
            sleep(millis(100)).await;
        }
        hang.release();
        node.until_running().await;
        node.sim.replay_events(100);
        sleep(seconds(10)).await;
        assert_eq!(node.calls("RunPodSandbox"), 1, "{call}");
        assert_eq!(node.calls("CreateContainer"), 1, "{call}");
        assert_eq!(node.sim.oracle().starts(&uid, "app"), 1, "{call}");
    }
}

/// Scenario 2.
#[tokio::test(start_paused = true)]
async fn after_a_start_an_inspection_precedes_the_next_step() {
    for latency in [0, 3, 70] {
        let node = Node::new();
        node.sim.set_latency(millis(latency));
        for (name, lasts) in [("one", 0), ("two", 1), ("three", 40)] {
            node.sim
                .on_container(name, Behavior::exits(millis(lasts), 0));
        }
        let spec = "initContainers: [{name: one, image: 'app:1'}, {name: two, image: 'app:1'}, \
                    {name: three, image: 'app:1'}], containers: [{name: app, image: 'app:1'}]";
        let uid = node.apply("web", spec);
        node.until_running().await;
        let oracle = node.sim.oracle();
        let entries = oracle.entries();
        let mut looks = 0;
        for (index, entry) in entries.iter().enumerate() {
            let EntryKind::CallEnded {
                call: "StartContainer",
                subject,
                ..
            } = &entry.what
            else {
                continue;
            };
            let calls = entries[index..]
                .iter()
                .filter_map(|entry| match &entry.what {
                    EntryKind::CallBegan { call, subject, .. } => Some((*call, subject)),
                    _ => None,
                });
            let is_step = |call: &str| call.starts_with("Create") || call.starts_with("Start");
            let mut before_next = calls.take_while(|(call, _)| !is_step(call));
            let looked =
                before_next.any(|(call, of)| call == "ContainerStatus" && of.id == subject.id);
            assert!(looked, "{subject} was not inspected\n{oracle}");
            looks += 1;
        }
        assert_eq!(looks, 4);
        for name in ["one", "two", "three", "app"] {
            assert_eq!(oracle.starts(&uid, name), 1, "{name} with {latency} ms");
        }
    }
}

/// Scenario 3.
#[tokio::test(start_paused = true)]
async fn a_start_that_is_reported_after_the_exit_changes_nothing() {
    let node = Node::new();
    node.sim.on_container("app", Behavior::exits(millis(1), 7));
    let late = EventFault::late(millis(300)).of(Kind::ContainerStartedEvent);
    node.sim.inject_event(late.always());
    let uid = node.apply("job", ONCE);
    sleep(seconds(5)).await;
    let id = node.containers(&uid).remove(0).id;
    assert_eq!(node.state("job", "app"), "Terminated Error 7");
    assert!(node.lifecycle_count(&id, LifecycleKind::Started) <= 1);
    assert_eq!(node.lifecycle_count(&id, LifecycleKind::Died), 1);
    assert_eq!(node.sim.oracle().starts(&uid, "app"), 1);
}

/// Scenario 4.
#[tokio::test(start_paused = true)]
async fn late_events_do_not_revive_an_exited_container() {
    let node = Node::new();
    let held = EventFault::held().of(Kind::ContainerStartedEvent);
    node.sim.inject_event(held.always());
    let spec = "restartPolicy: Never, \
                containers: [{name: a, image: 'app:1'}, {name: b, image: 'app:1'}]";
    let uid = node.apply("web", spec);
    node.until_running().await;
    let ids: Vec<_> = node.containers(&uid).into_iter().map(|of| of.id).collect();
    for id in &ids {
        node.sim.kill_container(id, 3, "");
    }
    for id in &ids {
        let took = node.until_death_of(id).await;
        assert!(took <= DELIVERY_LIMIT, "{took:?}");
    }
    // The STARTED events, which arrive last, say that both run.
    let mark = node.lifecycle().len();
    node.sim.release_events_reversed();
    sleep(DELIVERY_LIMIT).await;
    let ended = node.known("web");
    assert!(
        ended
            .containers
            .iter()
            .all(|found| found.phase.exit().is_some()),
        "{ended:?}"
    );
    let revived = node.lifecycle();
    let revived = revived[mark..].iter();
    assert_eq!(
        revived
            .filter(|event| event.kind == LifecycleKind::Started)
            .count(),
        0
    );
    assert_eq!(node.state("web", "a"), "Terminated Error 3");
}

/// Scenario 17.
#[tokio::test(start_paused = true)]
async fn what_a_timed_out_call_created_is_found_and_not_created_twice() {
    for call in ["RunPodSandbox", "CreateContainer", "StartContainer"] {
        let node = Node::new();
        let timeout = CriErrorKind::DeadlineExceeded(seconds(120));
        let fault = Fault::of(call).error(timeout, "as on a slow disk");
        node.sim.inject(fault.after_effect());
        let uid = node.apply("web", APP);
        node.until_running().await;
        sleep(seconds(10)).await;
        let oracle = node.sim.oracle();
        let failed = oracle.calls().into_iter().filter(|call| {
            matches!(&call.ended, Some((_, CallOutcome::Failed(..))))
                && !call.call.ends_with("Status")
        });
        let failed: Vec<_> = failed.map(|call| call.call).collect();
        assert_eq!(failed, [call], "no name was taken\n{oracle}");
        node.assert_never_twice(&uid);
        let live = node.containers(&uid);
        assert_eq!(oracle.live_instances(&uid, "app"), 1, "{live:?}");
    }
}

/// Scenario 18.
#[tokio::test(start_paused = true)]
async fn a_failed_start_is_reported_as_an_exit_at_once() {
    let node = Node::new();
    let broken = Behavior::does_not_start("exec: no such file");
    node.sim.on_container("app", broken);
    let uid = node.apply("job", ONCE);
    let failed = |node: &Node| node.phase("job").is_some_and(|phase| phase.is_terminal());
    let took = node.until("the pod has failed", failed).await;
    assert!(took <= DELIVERY_LIMIT, "{took:?}");
    let id = node.containers(&uid).remove(0).id;
    assert_eq!(node.lifecycle_count(&id, LifecycleKind::Died), 1);
    assert_eq!(node.state("job", "app"), "Terminated StartError 128");
    let oracle = node.sim.oracle();
    let start = oracle.entries().iter().position(|entry| {
        matches!(
            &entry.what,
            EntryKind::CallEnded {
                call: "StartContainer",
                ..
            }
        )
    });
    let later = oracle.calls_since(start.expect("it was tried"));
    let looks = later.iter().filter(|call| call.call == "ContainerStatus");
    // A terminated pod is cleaned up, with an inspection after each step.
    assert!((1..=3).contains(&looks.count()), "{oracle}");
}
