//! Calls the runtime never answers.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rubelet_cri::{ChangedObject, CriErrorKind, ImageService, RuntimeService, v1};
use rubelet_cri_grpc::{CallObserver, CriClient};
use tokio::sync::mpsc;

use crate::runtime::Served;

#[tokio::test]
async fn the_deadline_ends_the_call_here_and_in_the_runtime() {
    let limit = Duration::from_millis(50);
    let served = Served::with_request_timeout(limit);
    let error = served
        .client
        .container_status(v1::ContainerStatusRequest::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind, CriErrorKind::DeadlineExceeded(limit));
    assert_eq!(error.to_string(), "ContainerStatus: no answer within 50ms");
    served.runtime.cancelled.notified().await;
}

#[tokio::test]
async fn dropping_a_pull_cancels_it_in_the_runtime() {
    let served = Served::with_request_timeout(Duration::from_millis(1));
    let pull = served.client.pull_image(v1::PullImageRequest::default());
    tokio::select! {
        answer = pull => panic!("it never answers: {answer:?}"),
        () = served.runtime.hung.notified() => {}
    }
    served.runtime.cancelled.notified().await;
}

#[tokio::test]
async fn a_call_that_hangs_holds_up_no_other() {
    let served = Served::new();
    let command = v1::ExecSyncRequest {
        timeout: 0,
        ..Default::default()
    };
    tokio::select! {
        answer = served.client.exec_sync(command) => panic!("it never answers: {answer:?}"),
        () = async {
            served.runtime.hung.notified().await;
            for _ in 0..100 {
                served.client.version(v1::VersionRequest::default()).await.unwrap();
            }
        } => {}
    }
}

/// How each call ended that the client made.
#[derive(Default)]
pub(crate) struct Recorder(pub(crate) Mutex<Vec<(&'static str, Result<(), CriErrorKind>)>>);

impl CallObserver for Recorder {
    fn call_ended(&self, call: &'static str, _: Duration, outcome: Result<(), CriErrorKind>) {
        self.0.lock().push((call, outcome));
    }
}

#[tokio::test]
async fn the_observer_sees_the_end_of_every_call_even_of_a_dropped_one() {
    let limit = Duration::from_millis(300);
    let served = Served::with_request_timeout(limit);
    let recorder = Arc::new(Recorder::default());
    let client = served.client.clone().with_observer(recorder.clone());

    client.version(v1::VersionRequest::default()).await.unwrap();
    client
        .remove_container(v1::RemoveContainerRequest::default())
        .await
        .unwrap_err();
    client
        .container_status(v1::ContainerStatusRequest::default())
        .await
        .unwrap_err();
    served.runtime.hung.notified().await;
    tokio::select! {
        answer = client.pull_image(v1::PullImageRequest::default()) => panic!("{answer:?}"),
        () = served.runtime.hung.notified() => {}
    }
    assert_eq!(
        *recorder.0.lock(),
        [
            ("Version", Ok(())),
            ("RemoveContainer", Err(CriErrorKind::Unimplemented)),
            (
                "ContainerStatus",
                Err(CriErrorKind::DeadlineExceeded(limit))
            ),
            ("PullImage", Err(CriErrorKind::Canceled)),
        ]
    );
}

/// The late answers that the client reported.
struct Late(mpsc::UnboundedSender<LateAnswer>);

type LateAnswer = (&'static str, ChangedObject, Result<(), CriErrorKind>);

impl CallObserver for Late {
    fn call_ended(&self, _: &'static str, _: Duration, _: Result<(), CriErrorKind>) {}

    fn answered_late(
        &self,
        call: &'static str,
        changed: &ChangedObject,
        outcome: Result<(), CriErrorKind>,
    ) {
        let _ = self.0.send((call, changed.clone(), outcome));
    }
}

fn watched(served: &Served) -> (CriClient, mpsc::UnboundedReceiver<LateAnswer>) {
    let (sender, late) = mpsc::unbounded_channel();
    let client = served.client.clone().with_observer(Arc::new(Late(sender)));
    (client, late)
}

fn start() -> v1::StartContainerRequest {
    v1::StartContainerRequest {
        container_id: "c1".to_owned(),
    }
}

/// Begins a start that hangs in the runtime, and goes away.
async fn start_without_waiting(client: &CriClient, served: &Served) {
    tokio::select! {
        answer = client.start_container(start()) => panic!("it waits: {answer:?}"),
        () = served.runtime.hung.notified() => {}
    }
}

fn late(outcome: Result<(), CriErrorKind>) -> LateAnswer {
    let changed = ChangedObject::Container("c1".to_owned());
    ("StartContainer", changed, outcome)
}

#[tokio::test]
async fn a_start_past_its_deadline_continues_in_the_runtime_and_its_answer_is_reported() {
    let limit = Duration::from_secs(1);
    let served = Served::with_request_timeout(limit);
    let (client, mut late_answers) = watched(&served);
    let error = client.start_container(start()).await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::DeadlineExceeded(limit));
    served.runtime.go_on.notify_one();
    assert_eq!(late_answers.recv().await, Some(late(Ok(()))));
}

#[tokio::test]
async fn a_start_without_a_caller_continues_in_the_runtime_and_its_answer_is_reported() {
    let served = Served::new();
    let (client, mut late_answers) = watched(&served);
    start_without_waiting(&client, &served).await;
    served.runtime.go_on.notify_one();
    assert_eq!(late_answers.recv().await, Some(late(Ok(()))));
    // One with a caller is not reported.
    served.runtime.go_on.notify_one();
    client.start_container(start()).await.unwrap();
    drop(client);
    assert_eq!(late_answers.recv().await, None);
}

#[tokio::test]
async fn a_start_that_never_ends_is_cancelled_here_and_in_the_runtime() {
    let limit = Duration::from_millis(50);
    let served = Served::with_request_timeout(limit);
    let (client, mut late_answers) = watched(&served);
    let error = client.start_container(start()).await.unwrap_err();
    assert_eq!(error.kind, CriErrorKind::DeadlineExceeded(limit));
    served.runtime.cancelled.notified().await;
    let kind = CriErrorKind::DeadlineExceeded(limit * 2);
    assert_eq!(late_answers.recv().await, Some(late(Err(kind))));
}

#[tokio::test]
async fn a_start_without_a_caller_is_canceled_with_the_client() {
    let served = Served::new();
    let (client, mut late_answers) = watched(&served);
    start_without_waiting(&client, &served).await;
    let Served {
        runtime,
        client: last,
        ..
    } = served;
    drop((client, last));
    runtime.cancelled.notified().await;
    assert_eq!(late_answers.recv().await, None);
}
