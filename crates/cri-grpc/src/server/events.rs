//! Events for one client.
//!
//! The implementor's stream is always read, however slow the client is, so that no client can delay
//! the runtime. Unread events wait in the client's queue. A client whose queue is full gets its
//! contents and then an error, not a stream with gaps: it knows that it must list again, as after
//! each start of a stream.
//!
//! Kubelets that use events expect their statuses to be the state of the whole pod. The statuses
//! are queried when the client reads the event.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use rubelet_cri::{ContainerEvent, CriResult, EventStream, RuntimeService, v1};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::{Status, codegen::BoxStream};

use crate::status::status_from;

/// Maximum number of queued events per client. One event is some hundred bytes.
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
            // The client disconnected.
            let _ = end.send(status);
        }
    });
    let halves = Some((service, queued, ended));
    Box::pin(stream::unfold(halves, |halves| async {
        let (service, mut queued, ended) = halves?;
        match queued.recv().await {
            Some(event) => {
                let response = with_statuses(&*service, event).await;
                Some((Ok(response), Some((service, queued, ended))))
            }
            None => ended.await.ok().map(|status| (Err(status), None)),
        }
    }))
}

/// The message of an event, with the statuses of the sandbox and of all its containers. If the
/// sandbox is gone it only has the identifier and the pod's UID.
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
        // Cancel safe: `next` takes an event only when it is ready.
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
mod tests;
