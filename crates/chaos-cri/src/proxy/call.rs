//! Handles one call, with its fault.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header, response};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Frame, Incoming};

use super::{
    body::{self, Body, BoxError, StreamReset},
    runtime_connection::{RuntimeConnection, is_reset},
    stream,
};
use crate::{
    change,
    code::Code,
    decide::Decision,
    frame,
    rpc::{self, Rpc},
    rule::{Fault, Stage},
    subject::Subject,
};

/// Maximum size of a request, in bytes: more than any runtime accepts.
const MAX_REQUEST_SIZE: usize = 32 * 1024 * 1024;
/// Maximum size of a response that is buffered to be changed, in bytes.
const MAX_RESPONSE_SIZE: usize = 64 * 1024 * 1024;
/// Timeout of a call whose result the client does not receive.
const DISCARDED_CALL_TIMEOUT: Duration = Duration::from_secs(600);

/// A request with its whole body buffered.
pub(super) type BufferedRequest = Request<Body>;

/// Handles a request of a client.
pub(super) async fn answer(
    connection: Arc<RuntimeConnection>,
    request: Request<Incoming>,
) -> Result<Response<Body>, BoxError> {
    let Some(rpc) = rpc::of_path(request.uri().path()) else {
        let answer = connection.forward(request.map(body::from_incoming)).await?;
        return Ok(answer.map(body::from_incoming));
    };
    let (head, incoming) = request.into_parts();
    let request = Limited::new(incoming, MAX_REQUEST_SIZE)
        .collect()
        .await?
        .to_bytes();
    let message = frame::message(&request).unwrap_or_default();
    let subject = connection
        .shared
        .known
        .lock()
        .of_request(rpc.name, &message);
    let decision = connection.shared.decide(Stage::Call, rpc, &subject);
    let request = Request::from_parts(head, body::whole(request, None));
    match decision {
        None => forward_unchanged(&connection, rpc, request, subject).await,
        Some(decision) => inject(connection, rpc, request, subject, decision).await,
    }
}

/// Forwards a call without a fault. Messages of a stream may still get one.
async fn forward_unchanged(
    connection: &Arc<RuntimeConnection>,
    rpc: &'static Rpc,
    request: BufferedRequest,
    subject: Subject,
) -> Result<Response<Body>, BoxError> {
    let answer = connection.forward(request).await?;
    if rpc.shape.is_stream() {
        return Ok(stream::answer(connection, rpc, subject, answer));
    }
    let learns = match rpc.name {
        "RunPodSandbox" | "CreateContainer" => true,
        _ => rpc.shape.is_list() && connection.shared.rules.lock().name_pods(),
    };
    if !learns {
        return Ok(answer.map(body::from_incoming));
    }
    let (head, bytes, trailers) = read(answer).await?;
    learn(connection, rpc, &subject, &bytes);
    Ok(Response::from_parts(head, body::whole(bytes, trailers)))
}

fn learn(connection: &RuntimeConnection, rpc: &Rpc, subject: &Subject, bytes: &Bytes) {
    if let Some(message) = frame::message(bytes) {
        let mut known = connection.shared.known.lock();
        known.learn_created(rpc.name, subject, &message);
        known.learn_list(rpc.name, &message);
    }
}

async fn read(
    answer: Response<Incoming>,
) -> Result<(response::Parts, Bytes, Option<HeaderMap>), BoxError> {
    let (head, incoming) = answer.into_parts();
    let read = Limited::new(incoming, MAX_RESPONSE_SIZE).collect().await;
    let whole = match read {
        Ok(whole) => whole,
        // When the connection to the runtime ends, this one ends too.
        Err(error) if is_lost(&error) => pending().await,
        Err(error) => return Err(error),
    };
    let trailers = whole.trailers().cloned();
    Ok((head, whole.to_bytes(), trailers))
}

fn is_lost(error: &BoxError) -> bool {
    let error = error.downcast_ref::<hyper::Error>();
    error.is_some_and(|error| !is_reset(error))
}

async fn inject(
    connection: Arc<RuntimeConnection>,
    rpc: &'static Rpc,
    request: BufferedRequest,
    subject: Subject,
    mut decision: Decision,
) -> Result<Response<Body>, BoxError> {
    let injected_by = format!("injected by chaos-cri: {}", decision.rule);
    match &decision.fault {
        Fault::Hang => pending().await,
        Fault::Fail(code) => Ok(body::status(*code, &injected_by)),
        Fault::Cut => {
            connection.shared.cut();
            pending().await
        }
        Fault::Freeze(span) => {
            connection.freeze_state.freeze(*span);
            forward_unchanged(&connection, rpc, request, subject).await
        }
        Fault::Delay(span) => {
            let millis = decision.dice.within(span);
            tokio::time::sleep(Duration::from_millis(millis)).await;
            forward_unchanged(&connection, rpc, request, subject).await
        }
        Fault::Stall => {
            let answer = connection.forward(request).await?;
            let (head, unread) = answer.into_parts();
            let (sender, body) = body::channel();
            // Holds the runtime's response, unread, while the client waits for it.
            tokio::spawn(async move {
                sender.closed().await;
                drop(unread);
            });
            Ok(Response::from_parts(head, body))
        }
        Fault::Withhold => {
            let mut answer = connection.forward(request).await?;
            let first = answer.body_mut().frame().await;
            Ok(stream::answer_with(
                &connection,
                rpc,
                subject,
                answer,
                first,
            ))
        }
        Fault::Lost(code) => lost(connection, rpc, request, subject, *code, &injected_by).await,
        Fault::Eof => {
            let answer = connection.forward(request).await?;
            let (mut head, incoming) = answer.into_parts();
            discard_result(async { incoming.collect().await.map(drop) }).await;
            // A response may have its status in the headers only.
            head.headers.remove("grpc-status");
            Ok(Response::from_parts(head, body::empty()))
        }
        Fault::Reset => {
            let answer = connection.forward(request).await?;
            let (head, incoming) = answer.into_parts();
            discard_result(async { incoming.collect().await.map(drop) }).await;
            let (sender, body) = body::channel();
            let broken: Result<Frame<Bytes>, BoxError> = Err(StreamReset.into());
            // The channel has space for one frame.
            let _ = sender.try_send(broken);
            Ok(Response::from_parts(head, body))
        }
        _ => {
            let (mut head, bytes, trailers) = read(connection.forward(request).await?).await?;
            learn(&connection, rpc, &subject, &bytes);
            let message = frame::message(&bytes).and_then(|message| {
                let Decision {
                    fault,
                    select,
                    dice,
                    ..
                } = &mut decision;
                change::apply_fault(rpc.shape, fault, select, dice, &message)
            });
            head.headers.remove(header::CONTENT_LENGTH);
            let bytes = message.map_or(bytes, |message| frame::framed(&message));
            Ok(Response::from_parts(head, body::whole(bytes, trailers)))
        }
    }
}

/// Lets the runtime execute the call, even if the client disconnects, and drops the response.
async fn lost(
    connection: Arc<RuntimeConnection>,
    rpc: &'static Rpc,
    request: BufferedRequest,
    subject: Subject,
    code: Option<Code>,
    injected_by: &str,
) -> Result<Response<Body>, BoxError> {
    let done = tokio::spawn(discard_result(async move {
        let (_, bytes, _) = read(connection.forward(request).await?).await?;
        learn(&connection, rpc, &subject, &bytes);
        Ok::<_, BoxError>(())
    }));
    match code {
        None => pending().await,
        Some(code) => {
            // The client must not learn the result.
            let _ = done.await;
            Ok(body::status(code, injected_by))
        }
    }
}

async fn discard_result<E>(work: impl Future<Output = Result<(), E>>) {
    if !matches!(
        tokio::time::timeout(DISCARDED_CALL_TIMEOUT, work).await,
        Ok(Ok(()))
    ) {
        tracing::debug!("A call failed whose result is discarded");
    }
}
