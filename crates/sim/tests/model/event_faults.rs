//! Faults of events and of lists.

use std::time::Duration;

use rubelet_cri::{
    ContainerEvent, RuntimeService,
    v1::{self, ContainerEventType::ContainerStoppedEvent},
};
use rubelet_sim::{EntryKind, EventFault, EventOdds, ListFault, Sim, Subject};

use crate::{
    pod::{Pod, secs},
    reader::Reader,
};

/// A running pod, and a reader that has received its events.
async fn watched() -> (Pod, String, String, Reader) {
    let pod = Pod::new();
    let mut reader = Reader::open(&pod.sim).await;
    let (sandbox, id) = pod.up("web").await;
    assert_eq!(reader.kinds().await, "csCS");
    (pod, sandbox, id, reader)
}

#[tokio::test(start_paused = true)]
async fn an_event_is_lost_duplicated_or_delayed() {
    let (pod, sandbox, id, mut reader) = watched().await;
    let sim = &pod.sim;
    sim.inject_event(EventFault::lost().times(2));
    pod.stop(&id, 1).await.unwrap();
    pod.remove(&id).await.unwrap();
    assert_eq!(reader.kinds().await, "");
    sim.inject_event(EventFault::doubled());
    pod.create(&sandbox, "a", 0).await.unwrap();
    assert_eq!(reader.kinds().await, "CC");
    sim.inject_event(EventFault::late(secs(3)));
    let late = pod.create(&sandbox, "b", 0).await.unwrap();
    let next = pod.create(&sandbox, "c", 0).await.unwrap();
    assert_eq!(reader.ids().await, [next]);
    tokio::time::sleep(secs(4)).await;
    assert_eq!(reader.ids().await, [late]);
}

#[tokio::test(start_paused = true)]
async fn an_event_fault_applies_to_its_subject_and_kind_only() {
    let (pod, sandbox, id, mut reader) = watched().await;
    let web = Subject::container(&pod.uid, "web");
    pod.sim.inject_event(
        EventFault::lost()
            .on(web)
            .of(ContainerStoppedEvent)
            .always(),
    );
    pod.stop(&id, 1).await.unwrap();
    pod.remove(&id).await.unwrap();
    assert_eq!(reader.kinds().await, "D");
    let again = pod.create(&sandbox, "web", 1).await.unwrap();
    pod.start(&again).await.unwrap();
    pod.sim.kill_container(&again, 1, "");
    assert_eq!(reader.kinds().await, "CS");
    pod.stop_sandbox(&sandbox).await.unwrap();
    assert_eq!(reader.kinds().await, "x");
    pod.sim.clear_faults();
    let last = pod.sim.oracle();
    let lost = last.entries().iter().filter(
        |entry| matches!(&entry.what, EntryKind::EventLost(number, "a fault") if *number > 0),
    );
    assert_eq!(lost.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn held_events_are_released_in_either_order() {
    let (pod, _, id, mut reader) = watched().await;
    for reversed in [false, true] {
        pod.sim.inject_event(EventFault::held().always());
        let mut other = Pod::named(&pod.sim, "q");
        other.config.metadata.as_mut().unwrap().attempt = u32::from(reversed);
        let sandbox = other.run().await.unwrap();
        let made = other.create(&sandbox, "x", u32::from(reversed)).await;
        let made = made.unwrap();
        pod.sim.clear_faults();
        assert_eq!(reader.kinds().await, "");
        if reversed {
            pod.sim.release_events_reversed();
            assert_eq!(reader.ids().await, [&*made, &*sandbox, &*sandbox]);
        } else {
            pod.sim.release_events();
            assert_eq!(reader.ids().await, [&*sandbox, &*sandbox, &*made]);
        }
    }
    pod.sim.kill_container(&id, 1, "");
    assert_eq!(reader.kinds().await, "X");
}

#[tokio::test(start_paused = true)]
async fn an_event_can_lack_its_sandbox_or_have_a_wrong_pod() {
    let (pod, sandbox, id, mut reader) = watched().await;
    pod.sim.inject_event(EventFault::without_sandbox());
    pod.sim
        .inject_event(EventFault::with_wrong_pod("uid-other"));
    pod.stop(&id, 1).await.unwrap();
    pod.remove(&id).await.unwrap();
    let items = reader.items().await;
    let [Ok(bare), Ok(wrong)] = &items[..] else {
        panic!("{items:?}");
    };
    assert_eq!((&bare.sandbox, &bare.pod_uid), (&None, &None));
    assert_eq!(wrong.sandbox, Some(sandbox));
    assert_eq!(wrong.pod_uid.as_deref(), Some("uid-other"));
    let oracle = pod.sim.oracle();
    let (_, _, truth) = oracle.events_emitted()[4];
    assert_eq!(truth.pod_uid, Some(pod.uid));
}

#[tokio::test(start_paused = true)]
async fn events_can_be_replayed_and_invented() {
    let (pod, sandbox, id, mut reader) = watched().await;
    pod.sim.replay_events(3);
    assert_eq!(reader.ids().await, [&*sandbox, &*id, &*id]);
    pod.sim.replay_events(10);
    assert_eq!(reader.kinds().await, "csCScsCScs");
    let made_up = ContainerEvent {
        container: "nobody".to_owned(),
        kind: ContainerStoppedEvent,
        created_at: 1,
        sandbox: None,
        pod_uid: Some("uid-nobody".to_owned()),
        sequence: None,
    };
    pod.sim.send_event(made_up.clone());
    assert_eq!(reader.items().await, [Ok(made_up)]);
    assert_eq!(pod.sim.oracle().events_emitted().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_muted_fail_or_end() {
    let (pod, sandbox, _, mut reader) = watched().await;
    let sim = &pod.sim;
    sim.mute_events();
    let mut second = Reader::open(sim).await;
    pod.create(&sandbox, "a", 0).await.unwrap();
    assert_eq!(reader.kinds().await, "");
    assert_eq!(second.kinds().await, "C");

    sim.withhold_events(true);
    let mut third = Reader::open(sim).await;
    pod.create(&sandbox, "b", 0).await.unwrap();
    assert_eq!(second.kinds().await, "");
    sim.withhold_events(false);
    pod.create(&sandbox, "c", 0).await.unwrap();
    assert_eq!(second.kinds().await, "C");
    assert_eq!(third.kinds().await, "C");

    sim.cut_events();
    assert!(reader.error().await.is_unavailable());
    assert!(second.error().await.is_unavailable());
    let mut fourth = Reader::open(sim).await;
    sim.end_events();
    assert_eq!((fourth.items().await, fourth.has_ended()), (vec![], true));
    assert_eq!(sim.open_streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn random_event_faults_are_the_same_for_the_same_seed() {
    async fn run(seed: u64) -> String {
        let sim = Sim::new();
        sim.add_image("app");
        sim.inject_random_event_faults(EventOdds::mixed(), seed);
        let mut reader = Reader::open(&sim).await;
        for number in 0..50 {
            if reader.has_ended() {
                reader = Reader::open(&sim).await;
            }
            let pod = Pod::named(&sim, &format!("p{number}"));
            let (sandbox, _) = pod.up("web").await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            pod.stop_sandbox(&sandbox).await.unwrap();
        }
        tokio::time::sleep(secs(10)).await;
        sim.oracle().to_string()
    }
    let first = run(1).await;
    assert_eq!(first, run(1).await);
    assert_ne!(first, run(2).await);
    for part in ["lost: chance", "pod=?", "events #1 runtime unavailable"] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

/// UIDs of the pods and names of the containers in the lists.
async fn listed(sim: &Sim) -> (Vec<String>, Vec<String>) {
    let sandboxes = sim.list_pod_sandbox(v1::ListPodSandboxRequest::default());
    let sandboxes = sandboxes.await.expect("the runtime is up").items;
    let containers = sim.list_containers(v1::ListContainersRequest::default());
    let containers = containers.await.expect("the runtime is up").containers;
    let uids = sandboxes.into_iter().filter_map(|of| of.metadata);
    let names = containers.into_iter().filter_map(|of| of.metadata);
    (
        uids.map(|metadata| metadata.uid).collect(),
        names.map(|metadata| metadata.name).collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn lists_lack_the_items_that_a_fault_selects() {
    let sim = Sim::new();
    sim.populate(3, 2);
    let whole = listed(&sim).await;
    assert_eq!(whole.0, ["uid-0", "uid-1", "uid-2"]);
    assert_eq!(whole.1, ["c0", "c1", "c0", "c1", "c0", "c1"]);

    sim.inject_list(ListFault::empty("ListPodSandbox"));
    sim.inject_list(ListFault::without(
        "ListContainers",
        Subject::container("uid-1", "c0"),
    ));
    let partial = listed(&sim).await;
    assert_eq!(partial.0, Vec::<String>::new());
    assert_eq!(partial.1, ["c0", "c1", "c1", "c0", "c1"]);
    assert_eq!(listed(&sim).await, whole);

    sim.inject_list(ListFault::partial("ListContainers", 500, 7).always());
    let thin = listed(&sim).await.1.len();
    assert!((1..6).contains(&thin), "{thin}");
    sim.clear_faults();
    assert_eq!(listed(&sim).await, whole);
}

#[tokio::test(start_paused = true)]
async fn the_reported_state_can_be_overridden() {
    let (pod, _, id, _reader) = watched().await;
    let running = v1::ContainerState::ContainerRunning;
    pod.sim.override_state(&id, Some(running));
    pod.sim.kill_container(&id, 9, "");
    let status = pod.status(&id).await.unwrap();
    assert_eq!((status.state(), status.exit_code), (running, 0));
    assert_eq!(status.finished_at, 0);
    pod.sim.override_state(&id, None);
    assert_eq!(pod.exit(&id).await, (9, "Error".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_pods_are_added_without_calls_or_events() {
    let sim = Sim::new();
    let mut reader = Reader::open(&sim).await;
    sim.populate(1000, 3);
    assert_eq!(reader.kinds().await, "");
    assert_eq!(sim.oracle().calls().len(), 0);
    assert_eq!(sim.containers().len(), 3000);
    assert!(sim.running("uid-999", "c2").is_some());
}
