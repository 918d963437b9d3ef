//! Tests of `events`.

use futures_util::{FutureExt, StreamExt};

use rubelet_cri::v1::ContainerEventType;

use super::*;

fn event(container: &str, kind: ContainerEventType) -> ContainerEvent {
    ContainerEvent {
        container: container.to_owned(),
        kind,
        created_at: 0,
        sandbox: None,
        pod_uid: None,
        sequence: None,
    }
}

fn read(stream: &mut EventStream) -> Vec<(String, ContainerEventType, Option<u64>)> {
    std::iter::from_fn(|| stream.next().now_or_never().flatten())
        .map(|event| event.unwrap())
        .map(|event| (event.container, event.kind, event.sequence))
        .collect()
}

#[test]
fn each_subscriber_gets_all_events_in_order() {
    use ContainerEventType::{ContainerCreatedEvent, ContainerStartedEvent};
    let hub = EventHub::default();
    let changes = hub.changes();
    let mut first = hub.subscribe();
    hub.send(event("a", ContainerCreatedEvent));
    assert!(changes.has_changed().unwrap());
    let mut second = hub.subscribe();
    hub.send(event("a", ContainerStartedEvent));
    let started = ("a".to_owned(), ContainerStartedEvent, Some(2));
    let created = ("a".to_owned(), ContainerCreatedEvent, Some(1));
    assert_eq!(read(&mut first), [created, started.clone()]);
    assert_eq!(read(&mut second), [started]);
    hub.close();
    assert!(first.next().now_or_never().unwrap().is_none());
}

#[test]
fn a_slow_subscriber_misses_nothing_up_to_a_bound_and_is_reported_beyond_it() {
    use ContainerEventType::{
        ContainerCreatedEvent, ContainerDeletedEvent, ContainerStartedEvent, ContainerStoppedEvent,
    };
    let hub = EventHub::default();
    let mut slow = hub.subscribe();
    let life = [
        ContainerCreatedEvent,
        ContainerStartedEvent,
        ContainerStoppedEvent,
        ContainerDeletedEvent,
    ];
    for kind in life {
        hub.send(event("a", kind));
    }
    let told: Vec<_> = read(&mut slow)
        .into_iter()
        .map(|(_, kind, _)| kind)
        .collect();
    assert_eq!(
        told, life,
        "the end of a container hides nothing of its life"
    );

    for _ in 0..=MAX_PENDING {
        hub.send(event("a", ContainerStoppedEvent));
    }
    let mut other = hub.subscribe();
    hub.send(event("b", ContainerStoppedEvent));
    for number in 5..5 + MAX_PENDING as u64 {
        let next = slow.next().now_or_never().flatten().unwrap().unwrap();
        assert_eq!(next.sequence, Some(number));
    }
    let error = slow.next().now_or_never().flatten().unwrap().unwrap_err();
    assert_eq!(error.kind, CriErrorKind::ResourceExhausted);
    assert!(error.message.contains("list the containers"), "{error:?}");
    assert!(
        slow.next().now_or_never().unwrap().is_none(),
        "it has ended"
    );
    assert_eq!(read(&mut other).len(), 1, "others go on");
}

#[tokio::test]
async fn a_waiting_subscriber_wakes_up() {
    let hub = Arc::new(EventHub::default());
    let mut stream = hub.subscribe();
    let reader = tokio::spawn(async move { stream.next().await });
    tokio::task::yield_now().await;
    hub.send(event("a", ContainerEventType::ContainerStartedEvent));
    assert_eq!(reader.await.unwrap().unwrap().unwrap().container, "a");
}
