//! Floods of events, exits and pods.

use rubelet_cri::{
    ContainerEvent, RuntimeService as _, Timeouts,
    v1::{self, ContainerEventType as Kind},
};
use rubelet_image_pull::images::PullParallelism;
use rubelet_pleg::LifecycleKind;
use rubelet_sim::{EntryKind, Subject};
use tokio::time::{Instant, sleep};

use super::queries::{DELIVERY_LIMIT, millis};
use crate::tests::node::{Node, seconds};

/// Scenario 6.
#[tokio::test(start_paused = true)]
async fn a_thousand_exits_while_not_ready_are_all_handled_later() {
    const PODS: usize = 26;
    const EACH: usize = 40;
    let node = Node::new();
    let containers: Vec<_> = (0..EACH)
        .map(|number| format!("{{name: c{number}, image: 'app:1'}}"))
        .collect();
    let spec = format!("containers: [{}]", containers.join(", "));
    let uids: Vec<_> = (0..PODS)
        .map(|number| node.apply(&format!("p{number}"), &spec))
        .collect();
    node.until_running().await;
    // Pod tasks do nothing while the runtime reports that it is not ready.
    node.sim.set_ready(false, true);
    sleep(seconds(12)).await;
    let all = node.sim.containers();
    assert_eq!(all.len(), PODS * EACH);
    for container in &all {
        node.sim.kill_container(&container.id, 1, "");
    }
    for _ in 0..30 {
        sleep(seconds(1)).await;
        assert_eq!(node.agent().pleg().problem(), None);
    }
    let ended = |uid: &String| {
        let pod = node.known(&format!(
            "p{}",
            uids.iter().position(|of| of == uid).expect("one")
        ));
        let ends = pod
            .containers
            .iter()
            .filter(|found| found.phase.exit().is_some());
        ends.count()
    };
    assert!(
        uids.iter().all(|uid| ended(uid) == EACH),
        "all exits are observed"
    );
    node.sim.set_ready(true, true);
    let took = node.until_running().await;
    assert!(took <= seconds(20), "{took:?}");
    sleep(seconds(5)).await;
    assert_eq!(node.metric("kubelet_pleg_discard_events "), 0.0);
    for (name, heartbeat) in &node.agent().heartbeats {
        assert!(heartbeat.age() <= seconds(11), "{name}");
    }
    let oracle = node.sim.oracle();
    let starts = oracle
        .entries()
        .iter()
        .filter(|entry| matches!(entry.what, EntryKind::ContainerStarted(_)));
    assert_eq!(
        starts.count(),
        2 * PODS * EACH,
        "each was started again once"
    );
}

/// Scenario 15.
#[tokio::test(start_paused = true)]
async fn replayed_events_cost_one_inspection_per_pod_and_no_report() {
    const PODS: usize = 1000;
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.populate(PODS / 2, 1);
    // Whether these pods are desired is not known yet.
    node.set_waiting(true);
    node.start();
    sleep(seconds(30)).await;
    let containers = node.sim.containers();
    assert_eq!(containers.len(), PODS / 2);
    let (inspections, reported) = (node.inspections(), node.lifecycle());
    let mark = node.sim.oracle().mark();
    let kinds = [Kind::ContainerCreatedEvent, Kind::ContainerStartedEvent];
    for number in 0..10 * PODS {
        let pod = number % PODS;
        let found = containers.get(pod);
        let gone = |what: &str| format!("gone-{what}-{pod}");
        node.sim.send_event(ContainerEvent {
            container: found.map_or_else(|| gone("container"), |of| of.id.clone()),
            kind: kinds[number % kinds.len()],
            created_at: node.sim.wall_now() - 3_600_000_000_000,
            sandbox: Some(found.map_or_else(|| gone("sandbox"), |of| of.sandbox_id.clone())),
            pod_uid: Some(found.map_or_else(|| gone("pod"), |of| of.pod_uid.clone())),
            sequence: None,
        });
    }
    sleep(millis(900)).await;
    let events = node.sim.oracle().events_delivered().len();
    assert_eq!(events, 10 * PODS);
    let looked = node.inspections() - inspections;
    assert!(looked <= 1000.0, "{looked} inspections");
    let calls = node.sim.oracle().calls_since(mark);
    let lists = calls.iter().filter(|call| call.call == "ListPodSandbox");
    assert!(lists.count() <= 1, "events of one moment share a list");
    assert_eq!(node.lifecycle(), reported, "nothing has changed");
}

/// Scenario 16.
#[tokio::test(start_paused = true)]
async fn events_are_read_at_once_while_inspections_hang() {
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.populate(60, 1);
    node.set_waiting(true);
    node.start();
    sleep(seconds(10)).await;
    let _hangs =
        ["ContainerStatus", "PodSandboxStatus"].map(|call| node.sim.hang(call, Subject::any()));
    for container in node.sim.containers() {
        node.sim.kill_container(&container.id, 1, "");
    }
    let mark = node.sim.oracle().mark();
    let sandbox = node.sim.containers().remove(0).sandbox_id;
    let sandbox_config = node.sim.sandbox_config(&sandbox);
    for number in 0..500_u32 {
        let began = Instant::now();
        let name = format!("extra{number}");
        let made = node.sim.create_container(v1::CreateContainerRequest {
            pod_sandbox_id: sandbox.clone(),
            config: Some(v1::ContainerConfig {
                metadata: Some(v1::ContainerMetadata { name, attempt: 0 }),
                image: Some(v1::ImageSpec {
                    image: "app:1".to_owned(),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            sandbox_config: sandbox_config.clone(),
        });
        let container_id = made.await.expect("it is made").container_id;
        let start = v1::StartContainerRequest {
            container_id: container_id.clone(),
        };
        node.sim.start_container(start).await.expect("it starts");
        let stop = v1::StopContainerRequest {
            container_id: container_id.clone(),
            timeout: 0,
        };
        node.sim.stop_container(stop).await.expect("it stops");
        let remove = v1::RemoveContainerRequest { container_id };
        node.sim
            .remove_container(remove)
            .await
            .expect("it is removed");
        assert_eq!(began.elapsed(), millis(0), "the reader delayed the runtime");
        sleep(millis(20)).await;
    }
    let oracle = node.sim.oracle();
    let mut reported = std::collections::HashMap::new();
    let mut read = 0;
    for entry in &oracle.entries()[mark..] {
        match &entry.what {
            EntryKind::EventEmitted(number, _) => {
                reported.insert(*number, entry.at);
            }
            EntryKind::EventDelivered { number, .. } => {
                let took = reported.remove(number).map(|at| entry.at - at);
                assert!(took.unwrap_or_default() <= millis(10), "{took:?}");
                read += 1;
            }
            _ => {}
        }
    }
    assert!(reported.is_empty(), "all were read");
    assert!(read >= 2000, "{read} events");
}

#[tokio::test(start_paused = true)]
async fn simultaneous_exits_are_each_reported_at_once_and_once() {
    let node = Node::new();
    for number in 0..60 {
        let spec = "restartPolicy: Never, containers: [{name: app, image: 'app:1'}]";
        node.apply(&format!("p{number}"), spec);
    }
    node.until_running().await;
    sleep(seconds(10)).await;
    let all = node.sim.containers();
    for container in &all {
        node.sim.kill_container(&container.id, 1, "");
    }
    sleep(DELIVERY_LIMIT).await;
    for container in &all {
        assert_eq!(node.lifecycle_count(&container.id, LifecycleKind::Died), 1);
    }
}

/// I11.
#[tokio::test(start_paused = true)]
async fn a_flood_of_events_does_not_grow_memory() {
    const PODS: usize = 50;
    const EVENTS: usize = 100_000;
    /// Entries that one pod may cost beyond what the runtime has of it, and that all may.
    const EACH: usize = 80;
    const ALL: usize = 1024 + 512;
    let kinds = [
        Kind::ContainerCreatedEvent,
        Kind::ContainerStartedEvent,
        Kind::ContainerStoppedEvent,
        Kind::ContainerDeletedEvent,
    ];
    let mut node = Node::stopped(PullParallelism::Unlimited, Timeouts::default());
    node.sim.populate(PODS, 2);
    node.set_waiting(true);
    node.start();
    sleep(seconds(30)).await;
    let containers = node.sim.containers();
    let before = node.agent().pleg().kept();
    // No inspection can complete, so nothing is forgotten.
    let hangs = ["ContainerStatus", "PodSandboxStatus", "ListContainers"]
        .map(|call| node.sim.hang(call, Subject::any()));
    let mut most = 0;
    for number in 0..EVENTS {
        let of = &containers[number % containers.len()];
        // Of known and unknown containers, in known and unknown pods.
        let (container, sandbox) = match number % 5 {
            0 => (of.id.clone(), of.sandbox_id.clone()),
            1 => (format!("new-{number}"), of.sandbox_id.clone()),
            2 => (format!("new-{number}"), format!("new-{number}")),
            3 => (of.sandbox_id.clone(), of.sandbox_id.clone()),
            _ => (format!("new-{number}"), format!("other-{number}")),
        };
        let pod = match number % 7 {
            0 => format!("nobody-{number}"),
            _ => of.pod_uid.clone(),
        };
        node.sim.send_event(ContainerEvent {
            container,
            kind: kinds[number / 7 % kinds.len()],
            created_at: node.sim.wall_now(),
            sandbox: (number % 11 > 0).then_some(sandbox),
            pod_uid: Some(pod),
            sequence: None,
        });
        if number % 500 == 0 {
            sleep(millis(1)).await;
            most = most.max(node.agent().pleg().kept());
        }
    }
    sleep(millis(10)).await;
    assert_eq!(node.sim.oracle().events_delivered().len(), EVENTS);
    most = most.max(node.agent().pleg().kept());
    assert!(most <= before + PODS * EACH + ALL, "{before}, then {most}");
    // Then all of them are inspected and do not exist.
    let mark = node.sim.oracle().mark();
    drop(hangs);
    sleep(seconds(30)).await;
    let reads = node.sim.oracle().calls_since(mark);
    let reads = reads.iter().filter(|call| call.call.ends_with("Status"));
    assert!(reads.count() <= PODS * EACH * 4);
    assert!(node.agent().pleg().kept() <= before + ALL);
}
