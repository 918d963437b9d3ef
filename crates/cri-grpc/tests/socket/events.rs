//! Events through the socket.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt};
use rubelet_cri::{
    ContainerEvent, CriError, CriErrorKind, CriResult, RuntimeService,
    v1::{self, ContainerEventType::ContainerStoppedEvent},
};
use rubelet_cri_grpc::{CriClient, Timeouts};
use tokio::{
    io::AsyncReadExt,
    net::UnixListener,
    sync::mpsc::{UnboundedSender, unbounded_channel},
};

use crate::{foreign::Foreign, hanging::Recorder, runtime::Served};

fn stopped(container: &str) -> ContainerEvent {
    ContainerEvent {
        container: container.to_owned(),
        kind: ContainerStoppedEvent,
        created_at: 1_767_225_600_000_000_001,
        sandbox: Some("sandbox".to_owned()),
        pod_uid: Some("uid".to_owned()),
        sequence: None,
    }
}

/// The runtime's end of the next stream.
fn source(served: &Served) -> UnboundedSender<CriResult<ContainerEvent>> {
    let (send, receive) = unbounded_channel();
    let mut events = served.runtime.events.lock();
    *events = Some(receive);
    send
}

#[tokio::test]
async fn events_arrive_as_they_were_sent_and_the_end_too() {
    let served = Served::new();
    let send = source(&served);
    let mut events = served.client.container_events();
    let nameless = ContainerEvent {
        sandbox: None,
        pod_uid: None,
        ..stopped("b")
    };
    for event in [stopped("a"), nameless] {
        send.send(Ok(event.clone())).unwrap();
        assert_eq!(events.next().await, Some(Ok(event)));
    }
    assert_eq!(events.next().now_or_never(), None, "nothing else was sent");
    drop(send);
    assert_eq!(events.next().await, None);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn a_runtime_without_events_says_so_in_the_only_item() {
    let served = Served::new();
    let items: Vec<_> = served.client.container_events().collect().await;
    let [Err(error)] = &items[..] else {
        panic!("{items:?}");
    };
    assert!(error.is_unimplemented(), "{error}");
    assert_eq!(error.call, "GetContainerEvents");
}

#[tokio::test]
async fn a_failure_in_the_middle_is_the_last_item() {
    let served = Served::new();
    let send = source(&served);
    let kind = CriErrorKind::ResourceExhausted;
    let error = CriError::new("GetContainerEvents", kind, "enough");
    send.send(Ok(stopped("a"))).unwrap();
    send.send(Err(error.clone())).unwrap();
    let items: Vec<_> = served.client.container_events().collect().await;
    assert_eq!(items, [Ok(stopped("a")), Err(error)]);
}

#[tokio::test]
async fn no_subscription_is_made_before_the_stream_is_polled() {
    let mut served = Served::new();
    served.kill().await;
    let mut early = served.client.container_events();
    served.start();
    let send = source(&served);
    send.send(Ok(stopped("a"))).unwrap();
    assert_eq!(early.next().await, Some(Ok(stopped("a"))));
}

#[tokio::test]
async fn a_stream_ends_with_the_runtime_and_a_new_one_follows_the_next() {
    let mut served = Served::new();
    for _ in 0..20 {
        let send = source(&served);
        let mut events = served.client.container_events();
        send.send(Ok(stopped("a"))).unwrap();
        assert_eq!(events.next().await, Some(Ok(stopped("a"))));
        served.kill().await;
        let lost = events.next().await.unwrap().unwrap_err();
        assert!(lost.is_unavailable(), "{lost}");
        assert_eq!(events.next().await, None);
        let away: Vec<_> = served.client.container_events().collect().await;
        assert!(matches!(&away[..], [Err(error)] if error.is_unavailable()));
        served.start();
    }
}

#[tokio::test]
async fn a_stopping_server_does_not_wait_for_streams() {
    let mut served = Served::new();
    let send = source(&served);
    let mut events = served.client.container_events();
    send.send(Ok(stopped("a"))).unwrap();
    events.next().await.unwrap().unwrap();
    served.shut_down().await.unwrap();
    let ended = events.next().await.unwrap().unwrap_err();
    assert!(ended.is_unavailable(), "{ended}");
}

#[tokio::test]
async fn statuses_of_megabytes_are_skipped() {
    let foreign = Foreign::new(Duration::from_secs(60));
    let status = |number: u32| v1::ContainerStatus {
        id: number.to_string(),
        annotations: [("filler".to_owned(), "x".repeat(100_000))].into(),
        ..Default::default()
    };
    let big = v1::ContainerEventResponse {
        containers_statuses: (0..100).map(status).collect(),
        ..stopped("a").into()
    };
    let sandbox = v1::PodSandboxStatus {
        labels: [("app".to_owned(), "web".to_owned())].into(),
        network: Some(v1::PodSandboxNetworkStatus::default()),
        ..big.pod_sandbox_status.clone().unwrap()
    };
    let full = v1::ContainerEventResponse {
        pod_sandbox_status: Some(sandbox),
        ..big
    };
    *foreign.script.events.lock() = vec![full, stopped("b").into()];
    let events: Vec<_> = foreign.client.container_events().take(2).collect().await;
    assert_eq!(events, [Ok(stopped("a")), Ok(stopped("b"))]);
}

#[tokio::test]
async fn dropping_the_stream_closes_its_connection_even_before_any_answer() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("silent.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let timeouts = Timeouts {
        request: Duration::from_secs(60),
    };
    let client = CriClient::connect_lazy(socket.to_str().unwrap(), timeouts).unwrap();
    let mut events = client.container_events();
    let mut peer = tokio::select! {
        item = events.next() => panic!("nobody answers: {item:?}"),
        accepted = listener.accept() => accepted.unwrap().0,
    };
    let mut bytes = [0; 1024];
    tokio::select! {
        item = events.next() => panic!("nobody answers: {item:?}"),
        read = peer.read(&mut bytes) => assert_ne!(read.unwrap(), 0),
    }
    drop(events);
    while peer.read(&mut bytes).await.unwrap() > 0 {}
}

#[tokio::test]
async fn dropping_the_stream_is_noticed_in_the_runtime() {
    let served = Served::new();
    let send = source(&served);
    let mut events = served.client.container_events();
    send.send(Ok(stopped("a"))).unwrap();
    events.next().await.unwrap().unwrap();
    drop(events);
    served.runtime.cancelled.notified().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_delays_no_other_and_gets_an_error() {
    let served = Served::new();
    let send = source(&served);
    let mut events = served.client.container_events();
    let event = stopped(&"x".repeat(10_000));
    send.send(Ok(event.clone())).unwrap();
    events.next().await.unwrap().unwrap();
    for _ in 0..5000 {
        send.send(Ok(event.clone())).unwrap();
    }
    // The runtime's stream is given up, though not an event more was read.
    served.runtime.cancelled.notified().await;
    let rest: Vec<_> = events.collect().await;
    let (last, taken) = rest.split_last().unwrap();
    let last = last.as_ref().unwrap_err();
    assert_eq!(last.kind, CriErrorKind::ResourceExhausted, "{last}");
    assert!((1000..5000).contains(&taken.len()), "{}", taken.len());
}

#[tokio::test]
async fn a_stream_is_no_call() {
    let served = Served::new();
    let recorder = Arc::new(Recorder::default());
    let client = served.client.clone().with_observer(recorder.clone());
    client.container_events().next().await;
    assert_eq!(*recorder.0.lock(), []);
}
