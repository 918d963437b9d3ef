//! Lists that come in pieces, or do not.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rubelet_cri::{CriErrorKind, CriResult, RuntimeService, v1};
use tonic::Status;

use crate::{foreign::Foreign, hanging::Recorder};

async fn list(foreign: &Foreign) -> CriResult<Vec<String>> {
    let request = v1::ListContainersRequest::default();
    let all = foreign.client.list_containers(request).await?.containers;
    Ok(all.into_iter().map(|container| container.id).collect())
}

fn without_deadline() -> Foreign {
    Foreign::new(Duration::from_secs(60))
}

#[tokio::test]
async fn a_runtime_without_pieces_is_asked_for_them_once_for_each_connection() {
    let mut foreign = without_deadline();
    for _ in 0..3 {
        assert_eq!(list(&foreign).await.unwrap(), ["whole"]);
    }
    let (list_all, stream) = ("ListContainers", "StreamContainers");
    assert_eq!(
        foreign.script.called(),
        [stream, list_all, list_all, list_all]
    );

    foreign.restart().await;
    assert_eq!(list(&foreign).await.unwrap(), ["whole"]);
    assert_eq!(foreign.script.called(), [stream, list_all]);

    // A newer version comes up.
    foreign.script.streams.store(true, Ordering::Relaxed);
    foreign.script.pieces.lock().extend([Ok("a"), Ok("b")]);
    foreign.restart().await;
    for _ in 0..2 {
        assert_eq!(list(&foreign).await.unwrap(), ["a", "b"]);
    }
    assert_eq!(foreign.script.called(), [stream, stream]);
}

#[tokio::test]
async fn a_filtered_list_is_never_asked_for_in_pieces() {
    let foreign = without_deadline();
    foreign.script.streams.store(true, Ordering::Relaxed);
    let request = v1::ListContainersRequest {
        filter: Some(v1::ContainerFilter::default()),
    };
    foreign.client.list_containers(request).await.unwrap();
    assert_eq!(foreign.script.called(), ["ListContainers"]);
}

#[tokio::test]
async fn half_a_list_is_an_error_not_a_shorter_list() {
    let foreign = without_deadline();
    foreign.script.streams.store(true, Ordering::Relaxed);
    foreign
        .script
        .pieces
        .lock()
        .extend([Ok("a"), Err(Status::internal("broken"))]);
    let error = list(&foreign).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "StreamContainers: failed (Internal): broken"
    );
    assert_eq!(foreign.script.called(), ["StreamContainers"]);
}

#[tokio::test]
async fn the_deadline_is_for_the_whole_list() {
    let limit = Duration::from_millis(100);
    let foreign = Foreign::new(limit);
    foreign.script.streams.store(true, Ordering::Relaxed);
    foreign.script.silent.store(true, Ordering::Relaxed);
    foreign.script.pieces.lock().push(Ok("a"));
    let error = list(&foreign).await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::DeadlineExceeded(limit));
}

#[tokio::test]
async fn the_observer_hears_of_the_rpc_that_was_used() {
    let mut foreign = without_deadline();
    let recorder = Arc::new(Recorder::default());
    foreign.client = foreign.client.with_observer(recorder.clone());
    list(&foreign).await.unwrap();
    foreign.script.streams.store(true, Ordering::Relaxed);
    foreign.restart().await;
    list(&foreign).await.unwrap();
    assert_eq!(
        *recorder.0.lock(),
        [
            ("StreamContainers", Err(CriErrorKind::Unimplemented)),
            ("ListContainers", Ok(())),
            ("StreamContainers", Ok(())),
        ]
    );
}
