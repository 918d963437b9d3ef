//! `StopContainer`: SIGTERM, grace, SIGKILL.

use std::time::Duration;

use rubelet_sim::{Behavior, EntryKind};
use tokio::time::{Instant, sleep, timeout};

use crate::pod::{Pod, secs};

/// Stops a container with this behavior. Returns the time that it took and the exit code.
async fn stopped(behavior: Behavior, grace: i64) -> (u64, i32) {
    let pod = Pod::new();
    pod.sim.on_image("app", behavior);
    let (_, id) = pod.up("web").await;
    let start = Instant::now();
    let stop = pod.stop(&id, grace).await;
    stop.expect("nothing is in its way");
    (start.elapsed().as_secs(), pod.exit(&id).await.0)
}

#[tokio::test(start_paused = true)]
async fn a_container_is_killed_when_its_grace_period_is_over() {
    let slow = || Behavior::runs().exiting_on_term(secs(4), 0);
    for (behavior, grace, took, code) in [
        (Behavior::runs(), 30, 0, 143),
        (slow(), 30, 4, 0),
        (slow(), 2, 2, 137),
        (slow(), 0, 0, 137),
        (Behavior::runs().ignoring_term(), 30, 30, 137),
        (Behavior::exits(secs(7), 9).ignoring_term(), 30, 7, 9),
    ] {
        let what = format!("{behavior:?} with {grace} s");
        assert_eq!(stopped(behavior, grace).await, (took, code), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_stop_has_sent_sigterm_but_does_not_kill() {
    let pod = Pod::new();
    pod.sim.on_image("app", Behavior::runs().ignoring_term());
    let (_, id) = pod.up("web").await;
    timeout(secs(1), pod.stop(&id, 30))
        .await
        .expect_err("it takes 30 s");
    sleep(secs(60)).await;
    assert_eq!(pod.sim.running(&pod.uid, "web"), Some(id.clone()));

    // A second stop waits for its own grace period, but does not send the signal again.
    pod.stop(&id, 5).await.unwrap();
    assert_eq!(pod.exit(&id).await.0, 137);
    let oracle = pod.sim.oracle();
    let whats = oracle.entries().iter().map(|entry| &entry.what);
    assert_eq!(
        whats
            .filter(|what| matches!(what, EntryKind::SigtermSent(_)))
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn two_stops_at_once_both_end_with_the_shorter_grace() {
    let pod = Pod::new();
    pod.sim.on_image("app", Behavior::runs().ignoring_term());
    let (_, id) = pod.up("web").await;
    let start = Instant::now();
    let (long, short) = tokio::join!(pod.stop(&id, 600), pod.stop(&id, 3));
    long.unwrap();
    short.unwrap();
    assert!(start.elapsed() < Duration::from_secs(4));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_does_not_run_stops_at_once_and_keeps_its_state() {
    let pod = Pod::new();
    let sandbox = pod.run().await.unwrap();
    let id = pod.create(&sandbox, "web", 0).await.unwrap();
    pod.stop(&id, 30).await.unwrap();
    pod.start(&id).await.expect("it was never started");
}

#[tokio::test(start_paused = true)]
async fn removing_a_running_container_kills_it_first() {
    let pod = Pod::new();
    pod.sim.on_image("app", Behavior::runs().ignoring_term());
    let (_, id) = pod.up("web").await;
    pod.remove(&id).await.unwrap();
    assert!(pod.status(&id).await.unwrap_err().is_not_found());
    assert_eq!(pod.sim.oracle().exits(&pod.uid, "web"), [(137, "Error")]);
}
