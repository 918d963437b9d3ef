//! Events on their way to one client.
//!
//! The implementor's stream is always read, however slow the client is, so that no client can hold
//! up the runtime. What a client has not taken waits in a queue of its own. A client for whom the
//! queue is full gets what is in it and then an error, not a stream with holes in it: it knows that
//! it must list again, as after each beginning of a stream.
//!
//! Kubelets that follow events take the statuses in them for the state of the whole pod. Those are
//! looked up when the client takes the event.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use rubelet_cri::{ContainerEvent, CriResult, EventStream, RuntimeService, v1};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::{Status, codegen::BoxStream};

use crate::status::status_from;

/// How many events may wait for one client. One event is some hundred bytes.
const QUEUE: usize = 1000;

/// `events` of `service` as the client gets them, until it goes away or `stopped` turns true. The end that is no
/// clean one comes last.
pub(super) fn stream(
    service: Arc<dyn RuntimeService>,
    stopped: watch::Receiver<bool>,
) -> BoxStream<v1::ContainerEventResponse> {
    let events = service.container_events();
    let (queue, queued) = mpsc::channel(QUEUE);
    let (end, ended) = oneshot::channel();
    // Ends with `events`, with the server, or when the client's half, `queued`, is dropped.
    tokio::spawn(async move {
        if let Err(status) = drain(events, &queue, stopped).await {
            // Nobody to tell: the client is gone.
            let _ = end.send(status);
        }
    });
    let halves = Some((service, queued, ended));
    Box::pin(stream::unfold(halves, |halves| async {
        let (service, mut queued, ended) = halves?;
        match queued.recv().await {
            Some(event) => {
                let told = with_statuses(&*service, event).await;
                Some((Ok(told), Some((service, queued, ended))))
            }
            None => ended.await.ok().map(|status| (Err(status), None)),
        }
    }))
}

/// The message of an event, with the statuses of the sandbox and of all its containers. Of a sandbox
/// that is gone it has the identifier and the pod's UID.
async fn with_statuses(
    service: &dyn RuntimeService,
    event: ContainerEvent,
) -> v1::ContainerEventResponse {
    let mut message = v1::ContainerEventResponse::from(event);
    let Some(sandbox) = &mut message.pod_sandbox_status else {
        return message;
    };
    let request = v1::PodSandboxStatusRequest {
        pod_sandbox_id: sandbox.id.clone(),
        verbose: false,
    };
    match service.pod_sandbox_status(request).await {
        Ok(v1::PodSandboxStatusResponse {
            status: Some(status),
            containers_statuses,
            ..
        }) => {
            *sandbox = status;
            message.containers_statuses = containers_statuses;
        }
        _ => sandbox.set_state(v1::PodSandboxState::SandboxNotready),
    }
    message
}

async fn drain(
    mut events: EventStream,
    queue: &mpsc::Sender<ContainerEvent>,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), Status> {
    loop {
        // A branch that is dropped here loses nothing: `next` takes an event only when it is ready.
        let event: Option<CriResult<_>> = tokio::select! {
            event = events.next() => event,
            () = queue.closed() => return Ok(()),
            _ = stopped.wait_for(|stopped| *stopped) => {
                return Err(Status::unavailable("the runtime is shutting down"));
            }
        };
        let Some(event) = event else {
            return Ok(());
        };
        queue.try_send(event.map_err(status_from)?).map_err(|_| {
            Status::resource_exhausted(format!(
                "more than {QUEUE} events were waiting for this client; list and subscribe again"
            ))
        })?;
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use rubelet_cri::{CriError, CriErrorKind, v1::ContainerEventType};

    use super::*;

    /// One sandbox with one container.
    struct OnePod;

    #[async_trait]
    impl RuntimeService for OnePod {
        async fn pod_sandbox_status(
            &self,
            request: v1::PodSandboxStatusRequest,
        ) -> CriResult<v1::PodSandboxStatusResponse> {
            let id = request.pod_sandbox_id;
            if id != "s1" {
                let kind = CriErrorKind::NotFound;
                return Err(CriError::new("PodSandboxStatus", kind, "it is gone"));
            }
            let status = v1::PodSandboxStatus {
                id,
                metadata: Some(v1::PodSandboxMetadata {
                    name: "web".into(),
                    uid: "u1".into(),
                    namespace: "default".into(),
                    attempt: 0,
                }),
                ..Default::default()
            };
            Ok(v1::PodSandboxStatusResponse {
                status: Some(status),
                containers_statuses: vec![v1::ContainerStatus {
                    id: "c1".into(),
                    ..Default::default()
                }],
                ..Default::default()
            })
        }
    }

    async fn told(sandbox: &str) -> v1::ContainerEventResponse {
        let event = ContainerEvent {
            container: "c1".into(),
            kind: ContainerEventType::ContainerStoppedEvent,
            created_at: 7,
            sandbox: Some(sandbox.into()),
            pod_uid: Some("u1".into()),
            sequence: None,
        };
        with_statuses(&OnePod, event).await
    }

    #[tokio::test]
    async fn an_event_carries_the_state_of_the_whole_pod() {
        let event = told("s1").await;
        assert_eq!((&*event.container_id, event.created_at), ("c1", 7));
        let sandbox = event.pod_sandbox_status.unwrap();
        assert_eq!(sandbox.metadata.unwrap().name, "web");
        let ids: Vec<_> = event
            .containers_statuses
            .iter()
            .map(|one| &one.id)
            .collect();
        assert_eq!(ids, ["c1"]);
    }

    #[tokio::test]
    async fn an_event_of_a_pod_that_is_gone_names_it_and_shows_it_ended() {
        let event = told("s2").await;
        let sandbox = event.pod_sandbox_status.unwrap();
        assert_eq!(sandbox.state(), v1::PodSandboxState::SandboxNotready);
        assert_eq!(
            (&*sandbox.id, &*sandbox.metadata.unwrap().uid),
            ("s2", "u1")
        );
        assert!(event.containers_statuses.is_empty());
    }
}
