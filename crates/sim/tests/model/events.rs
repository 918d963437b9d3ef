//! Events, as each runtime emits them.

use std::time::Duration;

use futures_util::StreamExt;
use rubelet_cri::{RuntimeService, v1};
use rubelet_sim::{Behavior, EventFlavour, Fault, Sim};

use crate::{
    pod::{Pod, after, secs},
    reader::{Reader, others},
};

#[tokio::test(start_paused = true)]
async fn events_of_a_pod_are_those_of_containerd() {
    let pod = Pod::new();
    let mut reader = Reader::open(&pod.sim).await;
    let (sandbox, id) = pod.up("web").await;
    let started = reader.items().await;
    let all = started.iter().map(|event| event.as_ref().unwrap());
    assert!(
        all.clone()
            .all(|event| event.sandbox.as_deref() == Some(&*sandbox)
                && event.pod_uid.as_deref() == Some(&*pod.uid))
    );
    assert!(all.is_sorted_by_key(|event| event.created_at));
    let ids: Vec<_> = started.into_iter().map(|e| e.unwrap().container).collect();
    assert_eq!(ids, [&*sandbox, &*sandbox, &*id, &*id]);

    pod.stop(&id, 10).await.unwrap();
    assert_eq!(reader.kinds().await, "X");
    pod.remove(&id).await.unwrap();
    assert_eq!(reader.kinds().await, "D");
    let again = pod.create(&sandbox, "web", 1).await.unwrap();
    pod.start(&again).await.unwrap();
    assert_eq!(reader.kinds().await, "CS");
    pod.stop_sandbox(&sandbox).await.unwrap();
    assert_eq!(reader.kinds().await, "Xx");
    pod.remove_sandbox(&sandbox).await.unwrap();
    assert_eq!(reader.kinds().await, "Dd");
}

#[tokio::test(start_paused = true)]
async fn an_exit_emits_its_event_on_time_without_calls() {
    let pod = Pod::new();
    pod.sim.on_image("app", Behavior::exits(secs(10), 3));
    let mut reader = Reader::open(&pod.sim).await;
    pod.up("job").await;
    assert_eq!(reader.kinds().await, "csCS");
    tokio::time::sleep(secs(11)).await;
    assert_eq!(reader.kinds().await, "X");
    let oracle = pod.sim.oracle();
    let (emitted, got) = (oracle.events_emitted(), oracle.events_delivered());
    assert_eq!(emitted, got);
    assert_eq!(emitted.last().unwrap().1.as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_may_still_exist_after_its_removal_event() {
    let pod = Pod::new();
    let sandbox = pod.run().await.unwrap();
    pod.sim.set_removal_lag(secs(1));
    let mut reader = Reader::open(&pod.sim).await;
    reader.items().await;
    let (removed, ()) = tokio::join!(pod.remove_sandbox(&sandbox), async {
        assert_eq!(reader.kinds().await, "xd");
        let status = pod.sandbox_status(&sandbox).await.unwrap();
        assert_eq!(status.state(), v1::PodSandboxState::SandboxNotready);
    });
    removed.unwrap();
    assert!(
        pod.sandbox_status(&sandbox)
            .await
            .unwrap_err()
            .is_not_found()
    );
}

#[tokio::test(start_paused = true)]
async fn changes_that_no_runtime_reports_emit_no_event() {
    let pod = Pod::new();
    let mut reader = Reader::open(&pod.sim).await;
    pod.sim.inject(Fault::of("RunPodSandbox"));
    pod.run().await.unwrap_err();
    let sandbox = pod.run().await.unwrap();
    assert_eq!(reader.kinds().await, "cs");

    pod.sim.on_image("app", Behavior::does_not_start("no"));
    let id = pod.create(&sandbox, "bad", 0).await.unwrap();
    pod.start(&id).await.unwrap_err();
    assert_eq!(reader.kinds().await, "C");

    let oom = Behavior::runs_out_of_memory(secs(1)).with_reason_after(secs(5));
    pod.sim.on_image("app", oom);
    let id = pod.create(&sandbox, "big", 0).await.unwrap();
    pod.start(&id).await.unwrap();
    after(secs(2)).await;
    assert_eq!(reader.kinds().await, "CSX");
    assert_eq!(pod.exit(&id).await, (137, "Error".to_owned()));
    after(secs(5)).await;
    assert_eq!(pod.exit(&id).await, (137, "OOMKilled".to_owned()));
    assert_eq!(reader.kinds().await, "");
}

#[tokio::test(start_paused = true)]
async fn exits_while_the_runtime_is_down_are_never_reported() {
    let pod = Pod::new();
    pod.sim.on_image("app", Behavior::exits(secs(10), 0));
    let mut reader = Reader::open(&pod.sim).await;
    pod.up("job").await;
    assert_eq!(reader.kinds().await, "csCS");
    pod.sim.set_down(true);
    assert!(reader.error().await.is_unavailable());
    let mut away = Reader::open(&pod.sim).await;
    assert!(away.error().await.is_unavailable());
    after(secs(60)).await;
    pod.sim.set_down(false);
    let mut reader = Reader::open(&pod.sim).await;
    assert_eq!(reader.kinds().await, "");
    assert_eq!(pod.sim.oracle().exits(&pod.uid, "job").len(), 1);
    pod.sim.restart();
    assert!(reader.error().await.is_unavailable());
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_a_runtime_without_events_fails_or_ends() {
    let sim = Sim::new();
    sim.events(EventFlavour::None);
    assert!(Reader::open(&sim).await.error().await.is_unimplemented());
    sim.events(EventFlavour::Closed);
    let mut reader = Reader::open(&sim).await;
    assert_eq!((reader.items().await, reader.has_ended()), (vec![], true));
    sim.events(EventFlavour::Containerd);
    sim.offer_events(false);
    assert!(Reader::open(&sim).await.error().await.is_unimplemented());
    sim.offer_events(true);
    let reader = Reader::open(&sim).await;
    assert_eq!((sim.open_streams(), reader.has_ended()), (1, false));
    assert_eq!(sim.oracle().event_streams(), 1);
}

#[tokio::test(start_paused = true)]
async fn crio_emits_fewer_events() {
    let pod = Pod::new();
    pod.sim.events(EventFlavour::CriO);
    let mut reader = Reader::open(&pod.sim).await;
    let (sandbox, first) = pod.up("web").await;
    pod.create(&sandbox, "idle", 0).await.unwrap();
    assert_eq!(reader.kinds().await, "sCSC");
    pod.stop(&first, 1).await.unwrap();
    pod.remove(&first).await.unwrap();
    assert_eq!(reader.kinds().await, "XD");
    pod.stop_sandbox(&sandbox).await.unwrap();
    pod.remove_sandbox(&sandbox).await.unwrap();
    assert_eq!(reader.kinds().await, "x");
}

#[tokio::test(start_paused = true)]
async fn crio_keeps_events_for_the_first_reader_only() {
    let pod = Pod::new();
    pod.sim.events(EventFlavour::CriO);
    let (_, id) = pod.up("web").await;
    after(secs(3600)).await;
    let mut reader = Reader::open(&pod.sim).await;
    assert_eq!(reader.kinds().await, "sCS");
    reader.close().await;
    pod.stop(&id, 1).await.unwrap();
    let mut reader = Reader::open(&pod.sim).await;
    assert_eq!(reader.kinds().await, "");
    pod.remove(&id).await.unwrap();
    assert_eq!(reader.kinds().await, "D");
}

#[tokio::test(start_paused = true)]
async fn containerd_keeps_events_and_loses_one_after_a_reader_left() {
    let pod = Pod::new();
    let (sandbox, id) = pod.up("web").await;
    after(secs(400)).await;
    pod.stop(&id, 1).await.unwrap();
    let mut reader = Reader::open(&pod.sim).await;
    assert_eq!(reader.kinds().await, "X", "the older ones were forgotten");

    reader.close().await;
    pod.remove(&id).await.unwrap();
    pod.create(&sandbox, "next", 0).await.unwrap();
    let mut reader = Reader::open(&pod.sim).await;
    assert_eq!(reader.kinds().await, "C", "the dead stream took the other");

    // A new reader that comes in time also receives the event that the dead one swallows.
    pod.sim.cut_events();
    assert!(reader.error().await.is_unavailable());
    let mut reader = Reader::open(&pod.sim).await;
    pod.stop_sandbox(&sandbox).await.unwrap();
    assert_eq!(reader.kinds().await, "x");
}

#[tokio::test(start_paused = true)]
async fn containerd_sends_events_to_every_reader() {
    let pod = Pod::new();
    let mut readers = [
        Reader::open(&pod.sim).await,
        Reader::open(&pod.sim).await,
        Reader::open(&pod.sim).await,
    ];
    pod.up("web").await;
    for reader in &mut readers {
        assert_eq!(reader.kinds().await, "csCS");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_blocks_containerd_until_it_leaves() {
    let pod = Pod::new();
    let sandbox = pod.run().await.unwrap();
    let mut stalled = pod.sim.container_events();
    // Opened, and never read.
    stalled.next().await.unwrap().unwrap();
    let mut made = 0;
    let make = async {
        for number in 0..200 {
            pod.create(&sandbox, "c", number).await.unwrap();
            made += 1;
        }
    };
    let stuck = tokio::time::timeout(secs(60), make).await;
    assert!(stuck.is_err());
    // One event of the sandbox is pending too.
    assert_eq!(made, 99);
    // Read-only calls are still answered.
    pod.sandbox_status(&sandbox).await.unwrap();
    drop(stalled);
    pod.create(&sandbox, "c", 1000).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_shared_queue_gives_each_event_to_one_reader() {
    let pod = Pod::new();
    pod.sim.events(EventFlavour::Shared);
    let mut own = Reader::open(&pod.sim).await;
    let mut thief = Reader::open(&pod.sim).await;
    let (sandbox, id) = pod.up("web").await;
    let (ours, theirs) = (own.kinds().await, thief.kinds().await);
    assert_eq!((&*ours, &*theirs), ("cC", "sS"));
    thief.close().await;
    pod.stop(&id, 1).await.unwrap();
    pod.remove(&id).await.unwrap();
    pod.stop_sandbox(&sandbox).await.unwrap();
    assert_eq!(own.kinds().await, "Xx", "the dead reader took one more");
}

#[tokio::test(start_paused = true)]
async fn the_shared_queue_keeps_the_oldest_thousand_for_ever() {
    let pod = Pod::new();
    pod.sim.events(EventFlavour::Shared);
    let sandbox = pod.run().await.unwrap();
    for number in 0..1200 {
        pod.create(&sandbox, "c", number).await.unwrap();
    }
    after(Duration::from_secs(1_000_000)).await;
    let mut reader = Reader::open(&pod.sim).await;
    let ids = {
        let mut all = reader.ids().await;
        loop {
            others().await;
            let more = reader.ids().await;
            if more.is_empty() {
                break all;
            }
            all.extend(more);
        }
    };
    assert_eq!(ids.len(), 1000);
    assert_eq!((&ids[0], &ids[1]), (&sandbox, &sandbox));
    pod.create(&sandbox, "d", 0).await.unwrap();
    assert_eq!(reader.kinds().await, "C");
}

#[tokio::test(start_paused = true)]
async fn events_have_latency_like_calls() {
    let pod = Pod::new();
    let (_, id) = pod.up("web").await;
    let mut reader = Reader::open(&pod.sim).await;
    reader.items().await;
    pod.sim.set_latency_of("GetContainerEvents", secs(2));
    pod.sim.kill_container(&id, 1, "");
    assert_eq!(reader.kinds().await, "");
    tokio::time::sleep(Duration::from_millis(1001)).await;
    assert_eq!(reader.kinds().await, "X");
}
