//! Events on their way to one client.
//!
//! The implementor's stream is always read, however slow the client is, so that no client can hold
//! up the runtime. What a client has not taken waits in a queue of its own. A client for whom the
//! queue is full gets what is in it and then an error, not a stream with holes in it: it knows that
//! it must list again, as after each beginning of a stream.

use futures_util::{StreamExt, stream};
use rubelet_cri::{CriResult, EventStream, v1};
use tokio::sync::{mpsc, oneshot, watch};
use tonic::{Status, codegen::BoxStream};

use crate::status::status_from;

/// How many events may wait for one client. One event is some hundred bytes.
const QUEUE: usize = 1000;

/// `events` as the client gets them, until it goes away or `stopped` turns true. The end that is no
/// clean one comes last.
pub(super) fn stream(
    events: EventStream,
    stopped: watch::Receiver<bool>,
) -> BoxStream<v1::ContainerEventResponse> {
    let (queue, queued) = mpsc::channel(QUEUE);
    let (end, ended) = oneshot::channel();
    // Ends with `events`, with the server, or when the client's half, `queued`, is dropped.
    tokio::spawn(async move {
        if let Err(status) = drain(events, &queue, stopped).await {
            // Nobody to tell: the client is gone.
            let _ = end.send(status);
        }
    });
    let halves = Some((queued, ended));
    Box::pin(stream::unfold(halves, |halves| async {
        let (mut queued, ended) = halves?;
        match queued.recv().await {
            Some(event) => Some((Ok(event), Some((queued, ended)))),
            None => ended.await.ok().map(|status| (Err(status), None)),
        }
    }))
}

async fn drain(
    mut events: EventStream,
    queue: &mpsc::Sender<v1::ContainerEventResponse>,
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
        queue
            .try_send(event.map_err(status_from)?.into())
            .map_err(|_| {
                Status::resource_exhausted(format!(
                    "more than {QUEUE} events were waiting for this client; list and subscribe again"
                ))
            })?;
    }
}
