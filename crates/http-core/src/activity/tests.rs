//! Tests of `activity`.

use super::*;
use crate::{
    connections::{Connections, SECURE},
    peer::Peer,
};

fn activity() -> Arc<Activity> {
    let connections = Connections::new("readwrite", SECURE, Arc::new(()));
    Activity::new(connections.open(&Peer::UNAUTHENTICATED).unwrap())
}

#[tokio::test(start_paused = true)]
async fn connections_without_an_authorized_request_have_ten_seconds_and_others_ninety() {
    let began = Instant::now();
    let activity = activity();
    assert_eq!(activity.idle().await, Some(RefusalReason::Silent));
    assert_eq!(began.elapsed().as_secs(), 10);
    activity.let_in();
    assert_eq!(activity.idle().await, None);
    assert_eq!(began.elapsed().as_secs(), 100);
}

#[tokio::test(start_paused = true)]
async fn nothing_ends_while_an_answer_waits_for_something_to_tell() {
    let activity = activity();
    let mut one = activity.begin();
    one.pulled(true);
    let idle = tokio::spawn({
        let activity = Arc::clone(&activity);
        async move {
            activity.idle().await;
            Instant::now()
        }
    });
    tokio::time::sleep(Duration::from_secs(36_000)).await;
    let mut two = activity.begin();
    two.pulled(true);
    drop(one);
    tokio::time::sleep(Duration::from_secs(36_000)).await;
    activity.let_in();
    let ended = Instant::now();
    drop(two);
    assert_eq!((idle.await.unwrap() - ended).as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_takes_nothing_is_given_up_and_one_that_is_known_later() {
    for (known, seconds) in [(false, 60), (true, 4 * 3600)] {
        let activity = activity();
        activity.let_in();
        if known {
            activity.prove();
        }
        let mut open = activity.begin();
        tokio::time::sleep(Duration::from_secs(50)).await;
        open.pulled(false);
        let began = Instant::now();
        assert_eq!(activity.idle().await, Some(RefusalReason::Stalled));
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}
