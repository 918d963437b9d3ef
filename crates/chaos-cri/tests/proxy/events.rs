//! Event streams.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{FutureExt, StreamExt};
use rubelet_cri::{
    ContainerEvent, EventStream, RuntimeService,
    v1::ContainerEventType::{
        self, ContainerCreatedEvent as Created, ContainerStartedEvent as Started,
        ContainerStoppedEvent as Stopped,
    },
};

use crate::fixture::{Fixture, create, run_sandbox, soon, start, version};

/// Each name of a pod is used once.
static PROBES: AtomicUsize = AtomicUsize::new(0);

/// A stream that is known to be open, because it has delivered an event.
async fn open(fixture: &Fixture) -> EventStream {
    let mut events = fixture.client.container_events();
    // Only an event shows that a subscription took effect.
    let first = async {
        loop {
            let number = PROBES.fetch_add(1, Ordering::Relaxed);
            run_sandbox(&fixture.direct, &format!("probe-{number}"))
                .await
                .unwrap();
            let arrived =
                tokio::time::timeout(std::time::Duration::from_millis(200), events.next());
            if let Ok(Some(event)) = arrived.await {
                break event.unwrap();
            }
        }
    };
    soon(first).await;
    events
}

/// The next events, except for those of the pods that `open` creates.
async fn of_web(events: &mut EventStream, count: usize) -> Vec<ContainerEvent> {
    let taken = async {
        let mut found = Vec::new();
        while found.len() < count {
            let event = events.next().await.unwrap().unwrap();
            if event
                .pod_uid
                .as_deref()
                .is_none_or(|uid| !uid.starts_with("probe"))
            {
                found.push(event);
            }
        }
        found
    };
    soon(taken).await
}

fn kinds(events: &[ContainerEvent]) -> Vec<ContainerEventType> {
    events.iter().map(|event| event.kind).collect()
}

/// Creates and starts a container, which causes two events after those of its sandbox.
async fn start_web(fixture: &Fixture) -> (String, String) {
    let sandbox = run_sandbox(&fixture.direct, "web").await.unwrap();
    let container = create(&fixture.direct, "web", &sandbox).await.unwrap();
    start(&fixture.direct, &container).await.unwrap();
    (sandbox, container)
}

#[tokio::test]
async fn without_rules_events_are_unchanged() {
    let fixture = Fixture::new(&[]).await;
    let mut events = open(&fixture).await;
    let (sandbox, container) = start_web(&fixture).await;
    fixture.sim.kill_container(&container, 1, "Error");
    let found = of_web(&mut events, 5).await;
    assert_eq!(kinds(&found), [Created, Started, Created, Started, Stopped]);
    let ids: Vec<_> = found.iter().map(|event| &*event.container).collect();
    assert_eq!(
        ids,
        [&*sandbox, &sandbox, &container, &container, &container]
    );
    assert!(events.next().now_or_never().is_none());
}

#[tokio::test]
async fn faults_of_messages_have_their_effects() {
    // Rules, and the events that remain of the five of a container that starts and is killed.
    for (rule, expected) in [
        (
            "GetContainerEvents pod=web-uid event=STARTED drop",
            vec![Created, Created, Stopped],
        ),
        (
            "GetContainerEvents pod=web-uid event=STOPPED duplicate",
            vec![Created, Started, Created, Started, Stopped, Stopped],
        ),
        (
            "GetContainerEvents pod=web-uid event=STARTED skip=1 swap",
            vec![Created, Started, Created, Stopped, Started],
        ),
        (
            "GetContainerEvents pod=web-uid reverse=5 times=1",
            vec![Stopped, Started, Created, Started, Created],
        ),
        (
            "GetContainerEvents pod=web-uid event=STOPPED stale",
            vec![Created, Started, Created, Started, Stopped, Started],
        ),
        (
            "GetContainerEvents event=STOPPED delay=1ms..50ms",
            vec![Created, Started, Created, Started, Stopped],
        ),
        // Held until it is clear that no other event comes.
        (
            "GetContainerEvents pod=web-uid event=STOPPED swap",
            vec![Created, Started, Created, Started, Stopped],
        ),
    ] {
        let fixture = Fixture::new(&[]).await;
        let mut events = open(&fixture).await;
        fixture.set_rules(&[rule]);
        let (_, container) = start_web(&fixture).await;
        fixture.sim.kill_container(&container, 1, "Error");
        let found = of_web(&mut events, expected.len()).await;
        assert_eq!(kinds(&found), expected, "{rule}");
    }
}

#[tokio::test]
async fn a_stale_event_has_a_later_timestamp() {
    let fixture = Fixture::new(&["GetContainerEvents pod=web-uid event=STOPPED stale"]).await;
    let mut events = open(&fixture).await;
    let (_, container) = start_web(&fixture).await;
    fixture.sim.kill_container(&container, 1, "Error");
    let found = of_web(&mut events, 6).await;
    let [.., stopped, stale] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!((stopped.kind, stale.kind), (Stopped, Started));
    assert_eq!(stopped.container, stale.container);
    assert!(stale.created_at > stopped.created_at);
}

#[tokio::test]
async fn events_can_lose_their_pod_or_get_another_one() {
    let fixture = Fixture::new(&["GetContainerEvents nil-sandbox times=1"]).await;
    let mut events = fixture.client.container_events();
    let mut number = 0;
    let first = loop {
        number += 1;
        run_sandbox(&fixture.direct, &format!("x{number}"))
            .await
            .unwrap();
        let next = tokio::time::timeout(std::time::Duration::from_millis(200), events.next());
        if let Ok(event) = next.await {
            break event.unwrap().unwrap();
        }
    };
    assert_eq!((first.sandbox, first.pod_uid), (None, None));
    fixture.set_rules(&["GetContainerEvents wrong-uid=u7"]);
    run_sandbox(&fixture.direct, "y").await.unwrap();
    let wrong =
        async { while events.next().await.unwrap().unwrap().pod_uid.as_deref() != Some("u7") {} };
    soon(wrong).await;
}

#[tokio::test]
async fn thousands_of_old_events_can_be_replayed() {
    let fixture = Fixture::new(&[]).await;
    let mut events = open(&fixture).await;
    let (_, container) = start_web(&fixture).await;
    of_web(&mut events, 4).await;
    fixture.set_rules(&["GetContainerEvents event=STOPPED replay=5000"]);
    fixture.sim.kill_container(&container, 1, "Error");
    let all = async {
        let mut count = 0;
        while events.next().await.unwrap().unwrap().kind != Stopped {
            count += 1;
        }
        count
    };
    assert_eq!(soon(all).await, 5000);
    assert_eq!(fixture.counts(), [1]);
}

#[tokio::test]
async fn a_stream_ends_in_each_way_and_the_next_one_works() {
    // Rules, and whether the stream ends without an error.
    for (rule, good) in [
        ("GetContainerEvents pod=web-uid end times=1", true),
        ("GetContainerEvents pod=web-uid eof times=1", false),
        ("GetContainerEvents pod=web-uid reset times=1", false),
        ("cut", false),
    ] {
        let fixture = Fixture::new(&[]).await;
        let mut events = open(&fixture).await;
        if rule == "cut" {
            fixture.chaos.cut();
        } else {
            fixture.set_rules(&[rule]);
            run_sandbox(&fixture.direct, "web").await.unwrap();
        }
        let last = async {
            loop {
                match events.next().await {
                    None => break true,
                    Some(Err(_)) => break false,
                    Some(Ok(_)) => {}
                }
            }
        };
        assert_eq!(soon(last).await, good, "{rule}");
        drop(open(&fixture).await);
    }
}

#[tokio::test]
async fn a_stream_can_fail_be_empty_or_silent_and_recover() {
    let fixture = Fixture::new(&["GetContainerEvents fail=UNIMPLEMENTED every=2 times=2"]).await;
    for refused in [true, false, true] {
        if refused {
            let items: Vec<_> = soon(fixture.client.container_events().collect()).await;
            assert!(
                matches!(&items[..], [Err(error)] if error.is_unimplemented()),
                "{items:?}"
            );
        } else {
            drop(open(&fixture).await);
        }
    }
    fixture.set_rules(&["GetContainerEvents fail=OK"]);
    let items: Vec<_> = soon(fixture.client.container_events().collect()).await;
    assert!(items.is_empty(), "{items:?}");
    for rule in ["GetContainerEvents hang", "GetContainerEvents stall"] {
        fixture.set_rules(&[rule]);
        let mut events = fixture.client.container_events();
        assert!(events.next().now_or_never().is_none());
        let hit = async {
            while fixture.chaos.injected().iter().all(|hit| hit.rule != rule) {
                assert!(events.next().now_or_never().is_none(), "{rule}");
                tokio::task::yield_now().await;
            }
        };
        soon(hit).await;
        run_sandbox(&fixture.direct, rule).await.unwrap();
        version(&fixture.client).await.unwrap();
        assert!(events.next().now_or_never().is_none(), "{rule}");
    }
    fixture.set_rules(&["GetContainerEvents withhold"]);
    drop(open(&fixture).await);
}

#[tokio::test]
async fn new_rules_apply_to_open_streams() {
    let fixture = Fixture::new(&[]).await;
    let mut events = open(&fixture).await;
    fixture.set_rules(&["GetContainerEvents event=STARTED drop"]);
    let (_, container) = start_web(&fixture).await;
    // The next event shows that the rule was applied to the start.
    fixture.sim.kill_container(&container, 1, "Error");
    let found = of_web(&mut events, 3).await;
    assert_eq!(kinds(&found), [Created, Created, Stopped]);
    fixture.set_rules(&[]);
    run_sandbox(&fixture.direct, "web2").await.unwrap();
    assert_eq!(kinds(&of_web(&mut events, 2).await), [Created, Started]);
}
